"""Tests of the client on servers with quirks, which the embedded server emulates."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, wait_until
from support.embedded import embedded_http_server
from support.scripted import TEST_TIMEOUT_S
from tinkerwire._polling import poller
from tinkerwire._session import heartbeat
from tinkerwire.local import EmbeddedServer, EmbeddedTransport, FaultInjection, Quirks

pytestmark = pytest.mark.timeout(120)
MODEL = "tinkerwire/byte-nano"
TOKENS = list(b"to be or not to be")
PROMPT = tw.ModelInput.from_ints(TOKENS)
PARAMS = tw.SamplingParams(max_tokens=3, seed=5)
DATUM = tw.Datum(
    model_input=tw.ModelInput.from_ints(TOKENS[:-1]),
    loss_fn_inputs={"target_tokens": TOKENS[1:], "weights": np.ones(len(TOKENS) - 1, dtype=np.float32)},
)
NO_BYTES = [300, 301]
BAD_DATUM = tw.Datum(model_input=tw.ModelInput.from_ints(NO_BYTES), loss_fn_inputs={"target_tokens": NO_BYTES})


@contextmanager
def open_quirky_client(
    quirks: Quirks | None = None, wire: str = "0.16.1", *, retry: tw.RetryConfig = FAST, **settings: Any
) -> Iterator[tw.ServiceClient]:
    """Open a client without settings for an embedded server with quirks."""
    with (
        EmbeddedServer(wire_version=wire, quirks=quirks, seed=1, **settings) as server,
        tw.ServiceClient(base_url="local", transport=EmbeddedTransport(server), retry=retry) as client,
    ):
        yield client


def train(training: tw.TrainingClient) -> list[float]:
    """Train, and return the losses, computed from the outputs because metrics may be missing."""
    losses = []
    for _ in range(3):
        trained = training.forward_backward([DATUM, DATUM], "cross_entropy")
        training.optim_step(tw.AdamParams(learning_rate=1e-2)).result(TEST_TIMEOUT_S)
        losses.append(measure_loss(trained.result(TEST_TIMEOUT_S)))
    return losses


def measure_loss(output: tw.ForwardBackwardOutput) -> float:
    """Return the sum over the first datum in nats."""
    return -float(np.sum(output.loss_fn_outputs[0]["logprobs"].to_numpy()))


def run_flow(client: tw.ServiceClient, *, logprobs: bool = True) -> list[float]:
    """Train, save, load and sample; return losses and samples."""
    training = client.create_lora_training_client(MODEL, rank=4, seed=7)
    losses = train(training)
    assert losses[0] > losses[-1]
    path = training.save_state("kept").result(TEST_TIMEOUT_S).path
    restored = client.create_training_client_from_state(path)
    last = measure_loss(training.forward([DATUM], "cross_entropy").result(TEST_TIMEOUT_S))
    assert measure_loss(restored.forward([DATUM], "cross_entropy").result(TEST_TIMEOUT_S)) == pytest.approx(
        last, rel=1e-5
    )
    sampler_path = training.save_weights_for_sampler("kept").result(TEST_TIMEOUT_S).path
    for sampling in (
        client.create_sampling_client(model_path=sampler_path),
        training.save_weights_and_get_sampling_client("other"),
        training.save_weights_and_get_sampling_client(),
    ):
        response = sampling.sample(PROMPT, 2, PARAMS, include_prompt_logprobs=logprobs).result(TEST_TIMEOUT_S)
        assert [len(sequence.tokens) for sequence in response.sequences] == [3, 3]
        if logprobs:
            computed_logprobs = sampling.compute_logprobs(PROMPT).result(TEST_TIMEOUT_S)
            assert computed_logprobs == list(response.prompt_logprobs or ())
            assert computed_logprobs[0] is None
            assert -sum(logprob or 0.0 for logprob in computed_logprobs) == pytest.approx(last, rel=1e-4)
    return [*losses, last, *response.sequences[0].tokens]


@pytest.fixture(scope="module")
def expected() -> list[float]:
    """Return the result of the flow on a server without quirks."""
    with open_quirky_client() as client:
        return run_flow(client)


def check(expected: list[float], client: tw.ServiceClient, **options: bool) -> None:
    """Check that the flow gives the expected result."""
    assert run_flow(client, **options) == pytest.approx(expected, rel=1e-4)


# --- 1: results that take long -------------------------------------------------------------------------------------


@pytest.mark.parametrize("not_ready", ["408", "try_again"])
def test_result_that_is_not_ready_is_polled_again(expected: list[float], not_ready: str) -> None:
    """The client polls again until a delayed result is there, in both forms of the response."""
    with open_quirky_client(Quirks(result_delay_s=0.12, not_ready=not_ready), long_poll_s=0.05) as client:
        check(expected, client)


def test_poll_timeout_starts_next_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next poll follows at once while other responses show that the server is alive."""
    monkeypatch.setattr(poller, "POLL_TIMEOUT_S", 0.1)
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.02)
    retry = attrs.evolve(FAST, max_elapsed=0.25)
    with open_quirky_client(Quirks(result_delay_s=1.0), long_poll_s=300.0, retry=retry) as client:
        training = client.create_lora_training_client(MODEL, rank=4)
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)


def test_missing_results_end_at_the_deadline(pass_time: Callable[[float], None]) -> None:
    """The deadline of the client or of one sample raises RequestTimeoutError."""
    quirks = Quirks(result_delay_s=3600.0)
    with open_quirky_client(quirks, long_poll_s=0.05, retry=attrs.evolve(FAST, progress_timeout=50)) as client:
        training = client.create_lora_training_client(MODEL, rank=4)
        sampling = client.create_sampling_client(base_model=MODEL)
        sample = sampling.sample(PROMPT, 1, PARAMS, timeout=40)
        for waiting in (training._operations.creation, sample):
            wait_until(lambda waiting=waiting: waiting.queue_state == "active", "the server has accepted the request")
        pass_time(40)
        with pytest.raises(tw.RequestTimeoutError, match="timeout=40 s"):
            sample.result(TEST_TIMEOUT_S)
        pass_time(10)
        with pytest.raises(tw.RequestTimeoutError, match="progress_timeout=50 s"):
            training.result(TEST_TIMEOUT_S)


# --- 2 and 3: failures of every shape ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        ("error", tw.RequestFailedError),
        ("detail", tw.RequestFailedError),
        ("object", tw.RequestFailedError),
        ("category", tw.RequestFailedError),
        ("400", tw.BadRequestError),
        ("404", tw.NotFoundError),
        ("409", tw.ConflictError),
        ("422", tw.UnprocessableEntityError),
        ("500", tw.InternalServerError),
    ],
)
def test_every_failure_shape_raises_error_with_reason(failure: str, kind: type[tw.TinkerError]) -> None:
    """Each shape of a failure raises the right class soon, with the reason, and the client continues."""
    retry = attrs.evolve(FAST, max_elapsed=0.5)
    with open_quirky_client(Quirks(failure=failure), retry=retry) as client:
        training = client.create_lora_training_client(MODEL, rank=4)
        sampling = client.create_sampling_client(base_model=MODEL)
        failed = training.forward_backward([BAD_DATUM], "cross_entropy")
        after = training.forward_backward([DATUM], "cross_entropy")
        for future in (failed, sampling.sample(tw.ModelInput.from_ints(NO_BYTES), 1, PARAMS)):
            with pytest.raises(kind) as caught:
                future.result(TEST_TIMEOUT_S)
            assert ("Internal Server Error" if failure == "500" else "30") in str(caught.value)
            if kind is tw.RequestFailedError:
                expected = tw.RequestErrorCategory.User if failure == "error" else tw.RequestErrorCategory.Unknown
                assert caught.value.category is expected
        assert after.result(TEST_TIMEOUT_S).loss_fn_outputs
        assert sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S).sequences


# --- 4: forms of batches and results -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "quirks"),
    [
        *(("0.22.7", {"batches": "json", "rejection": status}) for status in ("415", "400", "422")),
        ("0.22.7", {"batches": "protobuf"}),
        ("0.22.7", {"batches": "protobuf", "missing": "client_config"}),
        ("0.38.0", {"missing": "client_config"}),
        ("0.22.7", {"results": "protobuf"}),
        ("0.22.7", {"results": "protobuf", "missing": "client_config", "batches": "json"}),
        ("0.38.0", {"results": "json"}),
    ],
    ids=str,
)
def test_body_form_of_server_is_discovered(expected: list[float], wire: str, quirks: dict[str, Any]) -> None:
    """The client finds the body form of batches and results, with and without flags."""
    with open_quirky_client(Quirks(**quirks), wire) as client:
        check(expected, client)


# --- 5 and 6: what is missing, and what is not known ---------------------------------------------------------------


@pytest.mark.parametrize("missing_status", ["404", "405"])
@pytest.mark.parametrize("wire", ["0.16.1", "0.25.0", "0.38.0"])
def test_training_needs_no_optional_endpoint(expected: list[float], wire: str, missing_status: str) -> None:
    """The flow needs none of the optional calls."""
    with open_quirky_client(Quirks(missing="optional", missing_status=missing_status), wire) as client:
        check(expected, client)


def test_missing_announced_endpoints_do_not_stop_training(expected: list[float]) -> None:
    """The client survives a server that announces calls which it does not have."""
    flags = {"sample_use_retrieve_futures": True, "sample_cancel_enabled": True, "sample_join_sampling_session": True}
    missing = {"retrieve_futures", "cancel_future", "join_sampling_session"}
    with open_quirky_client(Quirks(missing=missing), "0.38.0", client_config=flags) as client:
        check(expected, client)


def test_missing_endpoint_raises_error_with_its_name() -> None:
    """A user's call of a missing endpoint raises an error that names the call, and the client continues."""
    with open_quirky_client(Quirks(missing={"set_checkpoint_ttl", "create_sampling_session"})) as client:
        training = client.create_lora_training_client(MODEL, rank=4)
        path = training.save_state("a").result(TEST_TIMEOUT_S).path
        with pytest.raises(tw.NotFoundError, match="ttl"):
            client.create_rest_client().set_checkpoint_ttl_from_tinker_path(path, 60).result(TEST_TIMEOUT_S)
        sampling = client.create_sampling_client(base_model=MODEL)
        with pytest.raises(tw.NotFoundError, match="create_sampling_session"):
            sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        train(training)


def test_unknown_field_error_names_field_and_dialect(expected: list[float]) -> None:
    """Newer fields are not sent by default; if set, they cause a 422 that names field and dialect, without a gap."""
    with open_quirky_client(wire="0.6.3") as client:
        check(expected, client)
        training = client.create_lora_training_client(MODEL, rank=4)
        with pytest.raises(tw.UnprocessableEntityError, match=r"ttl_seconds.*encoded for wire 0\.3\.0 to 0\.16\.1"):
            training.save_state("late", ttl_seconds=60).result(TEST_TIMEOUT_S)
        train(training)


# --- 7 to 10 -------------------------------------------------------------------------------------------------------


def test_weights_with_short_path_can_be_sampled(expected: list[float]) -> None:
    """Weights named ``tinker://MODEL/NAME`` can be sampled."""
    with open_quirky_client(Quirks(short_paths=True)) as client:
        check(expected, client)


def test_short_prompt_logprobs_start_at_second_token(expected: list[float]) -> None:
    """N-1 values belong to all tokens but the first."""
    for wire in ("0.16.1", "0.25.0"):
        with open_quirky_client(Quirks(prompt_logprobs="short"), wire) as client:
            check(expected, client)


def test_absent_prompt_logprobs_raise_or_warn(expected: list[float], caplog: pytest.LogCaptureFixture) -> None:
    """compute_logprobs raises an error; a sample arrives without them, with a warning."""
    with open_quirky_client(Quirks(prompt_logprobs="absent")) as client:
        check(expected, client, logprobs=False)
        sampling = client.create_sampling_client(base_model=MODEL)
        with pytest.raises(tw.APIResponseValidationError, match=r"prompt_logprobs: expected .* got none"):
            sampling.compute_logprobs(PROMPT).result(TEST_TIMEOUT_S)
        with caplog.at_level(logging.WARNING, "tinkerwire"):
            assert sampling.sample(PROMPT, 1, PARAMS, include_prompt_logprobs=True).result(TEST_TIMEOUT_S).sequences
    assert "the server returned no prompt_logprobs, although the request asks for them" in caplog.text


def test_ignored_topk_warns_and_rejected_topk_raises(caplog: pytest.LogCaptureFixture) -> None:
    """Ignored top-k causes a warning, rejected top-k a clear error."""
    with open_quirky_client(Quirks(topk="ignored")) as client, caplog.at_level(logging.WARNING, "tinkerwire"):
        sampling = client.create_sampling_client(base_model=MODEL)
        request = sampling.sample(PROMPT, 1, PARAMS, include_prompt_logprobs=True, topk_prompt_logprobs=2)
        assert request.result(TEST_TIMEOUT_S).topk_prompt_logprobs is None
    assert "returned no topk_prompt_logprobs" in caplog.text
    with open_quirky_client(Quirks(topk="rejected")) as client:
        sampling = client.create_sampling_client(base_model=MODEL)
        request = sampling.sample(PROMPT, 1, PARAMS, include_prompt_logprobs=True, topk_prompt_logprobs=2)
        with pytest.raises(tw.BadRequestError, match="topk_prompt_logprobs is not supported"):
            request.result(TEST_TIMEOUT_S)
        assert sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S).sequences


@pytest.mark.parametrize("metrics", ["empty", "null"])
@pytest.mark.parametrize("wire", ["0.16.1", "0.25.0"])
def test_empty_metrics_are_accepted(expected: list[float], metrics: str, wire: str) -> None:
    """Empty and null metrics of one and several chunks read as no metrics."""
    with open_quirky_client(Quirks(metrics=metrics), wire) as client:
        check(expected, client)
        training = client.create_lora_training_client(MODEL, rank=4)
        assert training.forward([DATUM] * 3, "cross_entropy").result(TEST_TIMEOUT_S).metrics == {}
        assert not training.optim_step(ADAM).result(TEST_TIMEOUT_S).metrics


def test_rejected_late_load_does_not_stop_training(expected: list[float]) -> None:
    """A client from a state loads first; a later load is rejected clearly, and training continues."""
    with open_quirky_client(Quirks(load_first=True)) as client:
        check(expected, client)
        training = client.create_lora_training_client(MODEL, rank=4)
        path = training.save_state("a").result(TEST_TIMEOUT_S).path
        with pytest.raises(tw.BadRequestError, match="LoadWeights is not permitted"):
            training.load_state(path).result(TEST_TIMEOUT_S)
        train(training)


@pytest.mark.parametrize(("strict", "counts_rejected"), [(False, False), (True, False), (False, True)])
def test_rejected_operations_leave_no_gap(strict: bool, counts_rejected: bool) -> None:
    """Rejected operations leave no gap in seq_ids, and reuse no number that the server counted."""
    quirks = Quirks(load_first=True, counts_rejected=counts_rejected)
    with open_quirky_client(quirks, strict_sequence=strict, gap_wait_s=3600.0) as client:
        training = client.create_lora_training_client(MODEL, rank=4)
        path = training.save_state("a").result(TEST_TIMEOUT_S).path
        for _ in range(2):
            with pytest.raises(tw.BadRequestError):
                training.load_state(path).result(TEST_TIMEOUT_S)
            train(training)


@pytest.mark.parametrize("strict", [False, True])
def test_gap_of_an_uncertain_operation_does_not_block_training(strict: bool) -> None:
    """An operation that may have arrived leaves a gap, and training continues."""
    fault_injection = FaultInjection(p_reset=1, only={"optim_step"})
    settings: dict[str, Any] = {"strict_sequence": strict, "gap_wait_s": 0.3, "fault_injection": fault_injection}
    with open_quirky_client(**settings) as client:
        training = client.create_lora_training_client(MODEL, rank=4).result(TEST_TIMEOUT_S)
        with pytest.raises(tw.APIConnectionError):
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        fault_injection.p_reset = 0.0
        train(training)


def test_operation_behind_endless_gap_ends_at_deadline(pass_time: Callable[[float], None]) -> None:
    """The error of an operation behind a gap describes its state."""
    fault_injection = FaultInjection(p_reset=1, only={"optim_step"})
    retry = attrs.evolve(FAST, progress_timeout=50)
    with open_quirky_client(gap_wait_s=3600.0, fault_injection=fault_injection, retry=retry, long_poll_s=0.1) as client:
        training = client.create_lora_training_client(MODEL, rank=4).result(TEST_TIMEOUT_S)
        with pytest.raises(tw.APIConnectionError):
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        waiting = training.forward([DATUM], "cross_entropy")
        wait_until(lambda: waiting.queue_state == "active", "the server has accepted the request")
        pass_time(50)
        with pytest.raises(tw.RequestTimeoutError, match="queue active"):
            waiting.result(TEST_TIMEOUT_S)


@pytest.mark.parametrize("ids", ["integer", "uuid", "prefixed"])
@pytest.mark.parametrize("in_one_poll", [False, True])
def test_request_ids_of_any_form_are_polled(expected: list[float], ids: str, in_one_poll: bool) -> None:
    """Request ids have any form, polled one by one or in batches."""
    flags = {"sample_use_retrieve_futures": True} if in_one_poll else {}
    with open_quirky_client(Quirks(ids=ids), "0.38.0" if in_one_poll else "0.16.1", client_config=flags) as client:
        check(expected, client)


def test_flow_passes_on_a_server_with_many_quirks(expected: list[float]) -> None:
    """A client that knows only the URL passes the flow on a server with many quirks."""
    common = "result_delay_s=0.05,not_ready=try_again,prompt_logprobs=short,load_first,topk=ignored,missing=optional"
    for wire, quirks in (
        ("0.16.1", "short_paths,metrics=null,ids=integer,failure=400"),
        ("0.25.0", "short_paths,metrics=empty,ids=uuid,failure=500,missing_status=405"),
    ):
        options = ["--wire", wire, "--long-poll", "0.02", "--seed", "1", "--quirks", f"{common},{quirks}"]
        with embedded_http_server(*options) as url, tw.ServiceClient(base_url=url) as client:
            check(expected, client)
