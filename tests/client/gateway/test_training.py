"""Training and sampling through a gateway, with results equal to the bit to those without one."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.embedded import ServerProcess
from tinkerwire._connection.retry import RetryConfig
from tinkerwire.gateway import Gateway
from tinkerwire.local import Quirks
from tinkerwire.testing import LocalServer

NANO = "tinkerwire/byte-nano"
LINES = [[65 + (i * step) % 26 for i in range(16)] for step in (1, 3, 5)]
TIMEOUT_S = 100.0
PAIRS = [
    ("0.4.1", "0.38.0"),
    ("0.16.1", "0.16.1"),
    ("0.16.1", "0.25.0"),
    ("0.25.0", "0.4.1"),
    ("0.38.0", "0.16.1"),
    ("0.38.0", "0.38.0"),
]


def connect(url: str, wire: str | None) -> tw.ServiceClient:
    """Return a client that retries fast."""
    retry = RetryConfig(retry_delay_base=0.01, retry_delay_max=0.1)
    return tw.ServiceClient(base_url=url, api_key="tml-test", wire_version=wire, retry=retry)


def make_batch() -> list[tw.Datum]:
    """Return a batch for cross_entropy."""
    return [
        tw.Datum(
            model_input=tw.ModelInput.from_ints(line[:-1]),
            loss_fn_inputs={"target_tokens": np.asarray(line[1:]), "weights": np.ones(len(line) - 1, np.float32)},
        )
        for line in LINES
    ]


def bits_of(values: Any) -> str:
    """Return a text that is equal for equal float32 numbers."""
    return hashlib.sha256(np.asarray(values, np.float32).tobytes()).hexdigest()


def logprobs_of(output: Any) -> list[str]:
    """Return the bits of the logprobs of an output."""
    return [bits_of(fields["logprobs"].to_numpy()) for fields in output.loss_fn_outputs]


def train(training: tw.TrainingClient) -> list[Any]:
    """Do two steps, and return losses and logprobs."""
    futures: list[Any] = []
    for _ in range(2):
        futures.append(training.forward_backward(make_batch(), "cross_entropy"))
        training.optim_step(tw.AdamParams(learning_rate=5e-3)).result(TIMEOUT_S)
    outputs = [future.result(TIMEOUT_S) for future in futures]
    return [(sorted(output.metrics.items()), logprobs_of(output)) for output in outputs]


def run(service: tw.ServiceClient) -> list[Any]:
    """Train, save, load, resume, sample and list; return all that must be equal."""
    training = service.create_lora_training_client(NANO, rank=4, seed=3)
    found = train(training)
    path = training.save_state("state").result(TIMEOUT_S).path
    training.load_state(path).result(TIMEOUT_S)
    found.append(logprobs_of(training.forward(make_batch(), "cross_entropy").result(TIMEOUT_S)))
    sampler_path = training.save_weights_for_sampler("sampler").result(TIMEOUT_S).path
    sampling = service.create_sampling_client(model_path=sampler_path)
    params = tw.SamplingParams(max_tokens=6, seed=5)
    samples = sampling.sample(tw.ModelInput.from_ints(LINES[0]), num_samples=2, sampling_params=params)
    for sequence in samples.result(TIMEOUT_S).sequences:
        assert sequence.logprobs is not None
        found.append((list(sequence.tokens), bits_of(sequence.logprobs)))
    resumed = service.create_training_client_from_state(path)
    found.append(train(resumed))
    rest = service.create_rest_client()
    found.append(len(rest.list_training_runs().result(TIMEOUT_S).training_runs))
    return found


@pytest.mark.parametrize(("client", "server"), PAIRS)
@pytest.mark.parametrize("is_named", [True, False], ids=["named", "discovered"])
def test_results_are_those_of_a_direct_run(client: str, server: str, is_named: bool) -> None:
    with LocalServer(wire=server) as direct, connect(direct.url, server) as service:
        expected = run(service)
    with (
        LocalServer(wire=server) as upstream,
        Gateway(to=upstream.url, to_wire=server if is_named else None) as gateway,
        connect(gateway.url, client) as service,
    ):
        assert run(service) == expected


def test_client_that_discovers_its_server_works_through_a_gateway() -> None:
    with LocalServer(wire="0.7.0") as direct, connect(direct.url, "0.7.0") as service:
        expected = run(service)
    with (
        LocalServer(wire="0.7.0") as upstream,
        Gateway(to=upstream.url) as gateway,
        connect(gateway.url, None) as service,
    ):
        assert run(service) == expected


def test_several_clients_of_different_wires_share_a_gateway() -> None:
    with LocalServer(wire="0.16.1") as upstream, Gateway(to=upstream.url) as gateway:
        results = []
        for wire in ("0.4.1", "0.38.0"):
            with connect(gateway.url, wire) as service:
                results.append(train(service.create_lora_training_client(NANO, rank=4, seed=3)))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("wire", "quirks"),
    [
        ("0.16.1", "failure=400"),
        ("0.16.1", "failure=409,not_ready=try_again,ids=integer"),
        ("0.16.1", "failure=object,rejection=400"),
        ("0.16.1", "failure=422,batches=json,missing=optional,metrics=null"),
        ("0.24.1", "failure=detail,batches=protobuf,rejection=422,results=protobuf"),
    ],
)
@pytest.mark.parametrize("client", ["0.16.1", "0.38.0"])
def test_quirky_servers_train_and_keep_the_texts_of_failures(client: str, wire: str, quirks: str) -> None:
    with (
        LocalServer(wire=wire, quirks=Quirks.parse(quirks)) as upstream,
        Gateway(to=upstream.url) as gateway,
        connect(gateway.url, client) as service,
    ):
        training = service.create_lora_training_client(NANO, rank=4, seed=3)
        assert len(train(training)) == 2
        inputs = {"target_tokens": np.asarray([1]), "weights": np.ones(1, np.float32)}
        bad = tw.Datum(model_input=tw.ModelInput.from_ints([100_000]), loss_fn_inputs=inputs)
        with pytest.raises(tw.RequestFailedError, match="100000"):
            training.forward_backward([bad], "cross_entropy").result(TIMEOUT_S)


def test_restart_of_the_gateway_loses_nothing(tmp_path: Path) -> None:
    """The model, the sessions and the alias of a loaded model survive, as the upstream has them."""
    with LocalServer(wire="0.16.1") as direct, connect(direct.url, "0.16.1") as service:
        training = service.create_lora_training_client(NANO, rank=4, seed=3)
        expected = [*train(training), *train(training)]
    with LocalServer(wire="0.16.1") as upstream:
        process = GatewayProcess(upstream.url, tmp_path / "state.sqlite3")
        process.start()
        try:
            with connect(process.url, "0.38.0") as service:
                training = service.create_lora_training_client(NANO, rank=4, seed=3)
                found = train(training)
                process.kill()
                process.start()
                found += train(training)
            assert found == expected
        finally:
            process.stop()


class GatewayProcess(ServerProcess):
    """A process of ``tinkerwire gateway`` on one port."""

    def __init__(self, to: str, state: Path) -> None:
        super().__init__(state.parent)
        port = self._command[self._command.index("--port") + 1]
        command = self._command[: self._command.index("serve")]
        self._command = [*command, "gateway", "--to", to, "--port", port, "--state", str(state)]
