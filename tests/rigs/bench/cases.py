"""Table of the bench: what is measured, with which client on which server, and the gates."""

from __future__ import annotations

import attrs

OUR_CLIENT = "tinkerwire"
NEWEST_SDK = "0.38.0"
JSON_SDK = "0.16.1"
"""The newest official SDK that sends and reads only JSON."""
BARE_LIBRARY = "bare aiohttp"
"""The HTTP library of our client, without the client."""


@attrs.frozen
class Measurement:
    """One process that measures one client, and prints its figures as a JSON object."""

    client: str
    script: str
    arguments: tuple[str, ...]
    server: str = ""
    """``json`` or ``newest`` for the stub, or a mode of the waiting server; empty for none."""
    times: int = 1
    """Processes in each round; short work needs more than one."""
    max_rounds: int | None = None
    """Rounds in which the measurement takes part; None for all."""


@attrs.frozen(kw_only=True)
class Gate:
    """A row of the report: our figure over that of another measurement must not exceed a limit."""

    work: str
    unit: str
    figure: str
    measurement: Measurement
    reference: Measurement
    max_ratio: float

    @property
    def against(self) -> str:
        """The client that ours is compared with."""
        return "ours" if self.reference.client == OUR_CLIENT else self.reference.client


def _make_worker(client: str, server: str, *arguments: object, times: int = 1) -> Measurement:
    return Measurement(client, "worker.py", tuple(map(str, arguments)), server, times)


def _make_pair(server: str, sdk: str, *arguments: object, times: int = 1) -> dict[str, Measurement]:
    measurement, reference = (_make_worker(client, server, *arguments, times=times) for client in (OUR_CLIENT, sdk))
    return {"measurement": measurement, "reference": reference}


def _make_values(client: str) -> Measurement:
    return Measurement(client, "values.py", ())


def _make_delays(mode: str, samples: int) -> dict[str, Measurement]:
    arguments = (str(samples),) * 3
    measurement, reference = (
        Measurement(client, "delay_worker.py", arguments, mode) for client in (OUR_CLIENT, NEWEST_SDK)
    )
    return {"measurement": measurement, "reference": reference}


VALUES = {
    "datums_numpy": "1,000 datums from numpy arrays",
    "datums_tensor_numpy": "1,000 datums from TensorData of arrays",
    "datums_tensor_data": "1,000 datums from TensorData of lists",
    "datums_lists": "1,000 datums from lists",
    "to_ints": "to_ints of 100,000 tokens",
    "topk_lists": "top-k lists, 8 x 4,096 x 20",
    "topk_prompt": "top-k lists of a prompt, 32,768 x 20",
    "dumps": "1,000 prompts dumped to JSON and back",
    "pickles": "1,000 datums pickled and unpickled",
}
DELAYS = {
    "1,000 held": ("held", 1_000),
    "10,000 held": ("held", 10_000),
    "1,000 with 408 at once": ("fast", 1_000),
    "1,000 with batched polling": ("batched", 1_000),
}
"""Samples in flight, and how the server responds to polls; each sample takes 5 to 10 s."""
SAMPLE_TITLE = "one sample, 2,000 at once"
THOUSAND = _make_worker(OUR_CLIENT, "newest", "sample", 1_000)

GATES = (
    Gate(
        work="import",
        unit="wall ms",
        figure="wall_ms",
        max_ratio=0.25,
        **_make_pair("", NEWEST_SDK, "import", times=3),
    ),
    Gate(
        work="import",
        unit="memory added, MiB",
        figure="added_mib",
        max_ratio=0.45,
        **_make_pair("", NEWEST_SDK, "import", times=3),
    ),
    Gate(
        work=SAMPLE_TITLE,
        unit="CPU ms",
        figure="cpu_ms",
        max_ratio=0.15,
        **_make_pair("newest", NEWEST_SDK, "sample", 2_000),
    ),
    Gate(
        work=f"{SAMPLE_TITLE}, over the same two requests alone",
        unit="CPU ms",
        figure="cpu_ms",
        max_ratio=1.5,
        measurement=_make_worker(OUR_CLIENT, "newest", "sample", 2_000),
        reference=Measurement(BARE_LIBRARY, "transport_worker.py", ("aiohttp", "8000", "2000"), "newest"),
    ),
    Gate(
        work=f"{SAMPLE_TITLE}, over JSON",
        unit="CPU ms",
        figure="cpu_ms",
        max_ratio=0.10,
        **_make_pair("json", JSON_SDK, "sample", 2_000),
    ),
    *(
        Gate(
            work=f"one sample of {count:,} in all, over one of 1,000",
            unit="CPU ms",
            figure="cpu_ms",
            max_ratio=1.1,
            measurement=_make_worker(OUR_CLIENT, "newest", "sample", count),
            reference=THOUSAND,
        )
        for count in (10_000, 100_000)
    ),
    Gate(
        work="20,000 samples at once, results kept as arrays",
        unit="memory added, MiB",
        figure="added_mib",
        max_ratio=0.35,
        **_make_pair("newest", NEWEST_SDK, "memory", 20_000),
    ),
    Gate(
        work="forward_backward of 64 x 4,096 tokens, three arrays, protobuf",
        unit="CPU ms",
        figure="cpu_ms",
        max_ratio=0.5,
        **_make_pair("newest", NEWEST_SDK, "forward_backward"),
    ),
    Gate(
        work="forward_backward of 64 x 4,096 tokens, three arrays, JSON",
        unit="CPU ms",
        figure="cpu_ms",
        max_ratio=0.07,
        **_make_pair("json", JSON_SDK, "forward_backward"),
    ),
    Gate(
        work="samples awaited one by one",
        unit="wall ms",
        figure="wall_ms",
        max_ratio=1.0,
        **_make_pair("newest", NEWEST_SDK, "sequential", 300),
    ),
    *(
        Gate(
            work=title,
            unit="CPU ms",
            figure=figure,
            max_ratio=1.0,
            measurement=_make_values(OUR_CLIENT),
            reference=_make_values(NEWEST_SDK),
        )
        for figure, title in VALUES.items()
    ),
    *(
        Gate(
            work=f"ready to caller, p99, samples in flight: {title}",
            unit="ms",
            figure="p99_ms",
            max_ratio=1.0,
            **_make_delays(mode, samples),
        )
        for title, (mode, samples) in DELAYS.items()
    ),
    Gate(
        work="install",
        unit="MiB",
        figure="mib",
        max_ratio=0.35,
        measurement=Measurement(OUR_CLIENT, "install_worker.py", (), max_rounds=1),
        reference=Measurement(NEWEST_SDK, "install_worker.py", (), max_rounds=1),
    ),
)
MAX_DISTRIBUTIONS = 15
"""Most distributions that an installation of the client has."""
