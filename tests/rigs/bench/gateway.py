"""The gateway: CPU of its process for samples and batches, and memory with many samples in flight.

    python -m tests.rigs.bench.gateway

The section goes to docs/benchmark.md. Exit code 1 if a figure exceeds its limit.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import attrs
from tests.rigs.bench.cases import JSON_SDK, NEWEST_SDK, OUR_CLIENT
from tests.rigs.bench.stub import is_healthy, stub_server
from tests.rigs.bench.worker_process import FOLDER, run_worker
from tests.rigs.official.process import ServerProcess, find_free_port
from tests.rigs.official.report import DOCS, write_section
from tests.support.embedded import ListeningProcess

from tinkerwire._gateway.server import FILES_PER_POLL
from tinkerwire._transport.backpressure import CONNECTIONS, TRAINING_SHARE
from tinkerwire._transport.poll_connections import find_poll_limit

ROUNDS = 3
SAMPLES, WARM_UP_SAMPLES = 2000, 50
BATCHES = 3
"""Batches of the worker; its first one, of two datums, warms up."""
IN_FLIGHT = 20_000
"""Samples in flight at once, in as many processes as the limit of open files requires."""
SUBMISSION_S = 0.005
"""Time for the submission of a sample."""
MAX_SAMPLE_MS, MAX_BATCH_MS = 1.0, 20.0


@attrs.frozen
class Case:
    """A client and a server with the gateway between them.

    Args:
        title: what the gateway does.
        client: version of the official SDK, or our client.
        server: ``json`` or ``newest``, the servers of the stub.
        work: case of worker.py.
        wire: the wire version that our client speaks; None to find out.
    """

    title: str
    client: str
    server: str
    work: str
    wire: str | None = None

    @property
    def client_name(self) -> str:
        """The client, and its wire version."""
        return self.client if self.wire is None else f"{self.client} as {self.wire}"

    @property
    def max_ms(self) -> float:
        """The limit of CPU milliseconds for a sample or a batch."""
        return MAX_SAMPLE_MS if self.work == "sample" else MAX_BATCH_MS


CASES = (
    Case("a sample, all passed as it came", OUR_CLIENT, "newest", "sample"),
    Case("a sample, result from protobuf to JSON", JSON_SDK, "newest", "sample"),
    Case("a sample, result from JSON to protobuf", NEWEST_SDK, "json", "sample"),
    Case("a sample, result from protobuf to JSON, connections kept", OUR_CLIENT, "newest", "sample", JSON_SDK),
    Case("a sample, result from JSON to protobuf, connections kept", OUR_CLIENT, "json", "sample", NEWEST_SDK),
    Case("forward_backward of 64 x 4,096, all passed as it came", OUR_CLIENT, "newest", "forward_backward"),
    Case("forward_backward of 64 x 4,096, JSON to protobuf and back", JSON_SDK, "newest", "forward_backward"),
    Case("forward_backward of 64 x 4,096, protobuf to JSON and back", NEWEST_SDK, "json", "forward_backward"),
)


def read_cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_memory_mib(pid: int, field: str) -> float:
    """Return VmRSS (now) or VmHWM (at the peak) of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


@contextmanager
def run_gateway(to: str, *options: str, port: int | None = None) -> Iterator[ListeningProcess]:
    """Run a gateway in its own process."""
    gateway = ListeningProcess("gateway", "--to", to, *options, port=port)
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()


def measure_cpu_ms(case: Case, to: str) -> float:
    """Return the CPU milliseconds of the gateway for one sample, or for one batch."""
    with run_gateway(to) as gateway:
        # The first run discovers the server and warms up.
        warm_up = ["sample", gateway.url, str(WARM_UP_SAMPLES)] if case.work == "sample" else [case.work, gateway.url]
        run_worker(case.client, "worker.py", *warm_up)
        before = read_cpu_s(gateway.pid)
        wire = [] if case.wire is None else [case.wire]
        run_worker(case.client, "worker.py", case.work, gateway.url, str(SAMPLES), *wire)
        used = read_cpu_s(gateway.pid) - before
    return used * 1000 / (SAMPLES + WARM_UP_SAMPLES if case.work == "sample" else BATCHES)


@attrs.frozen
class InFlight:
    """Many samples in flight at once, in one or several processes of the gateway on one port."""

    samples: int
    processes: int
    before_mib: float
    """Memory of all processes."""
    peak_mib: float
    cpu_ms: float
    """CPU for each sample, all polls included."""
    p99_ms: float
    """Delay from the moment when a sample is ready at the server to the caller."""


def count_for_one_process() -> int:
    """Return how many samples one process of the gateway can hold, in thousands."""
    polls = find_poll_limit(sum(CONNECTIONS.values()), FILES_PER_POLL).number
    return polls * (TRAINING_SHARE - 1) // TRAINING_SHARE // 1000 * 1000


def measure_in_flight(samples: int, processes: int) -> InFlight:
    """Measure processes of the gateway with samples in flight that start when all were submitted.

    As many processes of the client share the samples, and as many of the server answer the polls: no process has more
    open files than its limit.
    """
    port, gateway_port = find_free_port(), find_free_port()
    url = f"http://127.0.0.1:{port}"
    start_s = time.monotonic() + samples * SUBMISSION_S
    server = [sys.executable, str(FOLDER / "waiting_server.py"), str(port), "held", "5-10", str(start_s)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for number in range(processes):
            process = stack.enter_context(ServerProcess(server, log=folder / f"{number}.txt"))
            process.wait_until("healthy", lambda: is_healthy(url), timeout_s=20)
        gateways = [stack.enter_context(run_gateway(url, "--share-port", port=gateway_port)) for _ in range(processes)]
        before_mib = sum(read_memory_mib(gateway.pid, "VmRSS") for gateway in gateways)
        before_s = sum(read_cpu_s(gateway.pid) for gateway in gateways)
        share = str(samples // processes)
        with ThreadPoolExecutor(processes) as threads:
            run = partial(run_worker, OUR_CLIENT, "delay_worker.py")
            delays = list(threads.map(lambda gateway: run(gateway.url, share, share, share), gateways))
        return InFlight(
            samples,
            processes,
            before_mib,
            sum(read_memory_mib(gateway.pid, "VmHWM") for gateway in gateways),
            (sum(read_cpu_s(gateway.pid) for gateway in gateways) - before_s) * 1000 / samples,
            max(figures["p99_ms"] for figures in delays),
        )


def main() -> int:
    """Measure, report, and return 1 if a figure exceeds its limit."""
    load = os.getloadavg()[0]
    with stub_server() as stub:
        urls = {"json": stub.json, "newest": stub.newest}
        figures = {case: [measure_cpu_ms(case, urls[case.server]) for _ in range(ROUNDS)] for case in CASES}
    most = min(IN_FLIGHT, count_for_one_process())
    counts = {most: 1, IN_FLIGHT: -(-IN_FLIGHT // most)}
    text = _render(figures, [measure_in_flight(samples, processes) for samples, processes in counts.items()], load)
    write_section(DOCS / "benchmark.md", "gateway", text, title="Benchmark")
    sys.stdout.write(text)
    return int(any(statistics.median(values) > case.max_ms for case, values in figures.items()))


def _render(figures: dict[Case, list[float]], in_flight: list[InFlight], load: float) -> str:
    lines = [
        "## The gateway",
        "",
        f"Made by `make bench`, {platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, with a load average of {load:.1f} at the start: CPU of the gateway's process, "
        f"medians of {ROUNDS} rounds (least to most). A sample is two requests: a prompt of 1,000 tokens, and the poll "
        "for 256 tokens with logprobs; 2,000 are in flight at once. A batch has three tensors and logprobs back, "
        "polls included. The server is that of the table of the clients.",
        "",
        "| work | client | CPU ms | allowed |",
        "|---|---|---:|---:|",
    ]
    for case, values in figures.items():
        figure = f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"
        mark = "" if statistics.median(values) <= case.max_ms else " (missed)"
        lines.append(f"| {case.title} | {case.client_name} | {figure} | {case.max_ms:g}{mark} |")
    lines += [
        "",
        "Samples in flight at once: all are submitted before the first one starts at the server, and each takes 5 to "
        "10 s. A held sample takes two open files, and one process holds as many as half of its files, less a quarter "
        "for training; several processes share the port (`--share-port`), as do those of the server. Memory and CPU "
        "are those of all processes of the gateway, the repeated polls included.",
        "",
        "| samples | processes | MiB before | MiB at the peak | CPU ms of a sample | ready to caller, p99, ms |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {held.samples:,} | {held.processes} | {held.before_mib:.0f} | {held.peak_mib:.0f} | {held.cpu_ms:.2f} "
        f"| {held.p99_ms:,.0f} |"
        for held in in_flight
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
