"""Tests of servers that expect another seq_id: the operation is resent once, or fails at once with both seq_ids."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinkerwire as tw
from support.clients import ADAM, FAST, datum, open_client
from support.scripted import TEST_TIMEOUT_S, RecordedRequest, ScriptedResponse, ScriptedServer, in_order, seq_ids
from tinkerwire._training.sequence_conflict import sequence_conflict
from tinkerwire_base.errors import RequestFailedError, ResponseInfo, status_error

pytestmark = pytest.mark.timeout(60)
STEPS = ("forward_backward", "optim_step", "save_weights", "save_weights_for_sampler")
LOAD = "tinker://m1/weights/a"


class CountingServer:
    """Server that compares seq_ids with its count, when a request arrives or when its operation runs.

    Args:
        counts_loads: count loads.
        counts_rejected: count rejected loads.
        is_late: report a conflict as the result of the operation, like servers that check when they run it.
    """

    def __init__(
        self, server: ScriptedServer, *, counts_loads: bool = True, counts_rejected: bool = False, is_late: bool = False
    ) -> None:
        self.expected = 1
        self.applied: list[str] = []
        self.rejects_loads = False
        self._server = server
        self._counts_loads, self._counts_rejected, self._is_late = counts_loads, counts_rejected, is_late
        self._late: dict[str, str] = {}
        for name in STEPS:
            server.rules[name] = self._submit
        server.rules["load_weights"] = self._load
        for kind in ("ForwardBackward", "OptimStep", "SaveWeights", "SaveWeightsForSampler"):
            server.on_poll(kind, self._poll)

    def _submit(self, request: RecordedRequest) -> ScriptedResponse:
        response = self._server.healthy_response(request)
        seq_id = request.body["seq_id"]
        if seq_id == self.expected:
            self.expected += 1
            self.applied.append(request.name)
            return response
        detail = f"Sequence conflict: expected {self.expected}, got {seq_id}."
        if not self._is_late:
            return ScriptedResponse({"detail": detail}, status=409)
        self._late[response.body["request_id"]] = detail
        return response

    def _load(self, request: RecordedRequest) -> ScriptedResponse:
        if self.rejects_loads:
            self.expected += self._counts_rejected
            return ScriptedResponse({"detail": "no such checkpoint"}, status=404)
        self.expected += self._counts_loads
        return self._server.healthy_response(request)

    def _poll(self, request: RecordedRequest) -> ScriptedResponse:
        detail = self._late.get(request.body["request_id"])
        return ScriptedResponse({"detail": detail}, status=409) if detail else self._server.healthy_response(request)


@pytest.mark.parametrize("is_late", [False, True], ids=["at submission", "as the result"])
@pytest.mark.parametrize(
    ("counts_loads", "counts_rejected"), [(False, False), (True, True), (True, False), (False, True)]
)
@pytest.mark.parametrize("rejects_loads", [False, True])
def test_training_continues_after_a_load_however_a_server_counts_it(
    server: ScriptedServer,
    training: tw.TrainingClient,
    is_late: bool,
    counts_loads: bool,
    counts_rejected: bool,
    rejects_loads: bool,
) -> None:
    """Servers may count completed or rejected loads or not; each later operation runs once, in order."""
    counting = CountingServer(server, counts_loads=counts_loads, counts_rejected=counts_rejected, is_late=is_late)
    counting.rejects_loads = rejects_loads
    for _ in range(2):
        load = training.load_state(LOAD)
        if rejects_loads:
            with pytest.raises(tw.NotFoundError):
                load.result(TEST_TIMEOUT_S)
        futures: list[Any] = [training.forward_backward([datum()], "cross_entropy"), training.optim_step(ADAM)]
        futures.append(training.save_state("a"))
        for future in futures:
            future.result(TEST_TIMEOUT_S)
    assert counting.applied == ["forward_backward", "optim_step", "save_weights"] * 2


@pytest.mark.parametrize("is_late", [False, True], ids=["at submission", "as the result"])
def test_chunks_of_a_batch_continue_under_the_expected_seq_ids(server: ScriptedServer, is_late: bool) -> None:
    """All chunks of a batch run once, in order."""
    counting = CountingServer(server, counts_loads=False, is_late=is_late)
    with open_client(server.url, chunk_limits=tw.ChunkLimits(max_datums=1)) as client:
        training = client.create_lora_training_client("base")
        training.load_state(LOAD)
        training.forward_backward([datum(1), datum(2), datum(3)], "cross_entropy").result(TEST_TIMEOUT_S)
    assert counting.applied == ["forward_backward"] * 3


def test_conflict_without_a_number_fails_at_once(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """The client does not retry: the same request would cause the same conflict."""
    training.result(TEST_TIMEOUT_S)
    server.rules["optim_step"] = lambda _: ScriptedResponse({"detail": "Sequence conflict"}, status=409)
    with pytest.raises(tw.SequenceConflictError, match="seq_id 1, and the server expects another one") as caught:
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert (caught.value.seq_id, caught.value.expected_seq_id) == (1, None)
    assert seq_ids(server) == [1]


def test_second_conflict_fails_with_both_seq_ids(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """The client resends once; the error has the seq_id that the server expects after that."""
    expected = iter(range(7, 100))
    server.rules["optim_step"] = lambda _: ScriptedResponse(
        {"detail": f"seq_id: expected {next(expected)}"}, status=409
    )
    with pytest.raises(tw.SequenceConflictError, match="seq_id 7, and the server expects 8"):
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1, 7]


def test_operation_that_may_have_run_is_not_resent(server: ScriptedServer) -> None:
    """The response was lost, and the server counted it: the operation fails, and training continues."""
    conflict = ScriptedResponse({"detail": "Sequence conflict: expected 2, got 1."}, status=409)
    server.rules["optim_step"] = in_order(ScriptedResponse(drop=True), conflict, server.healthy_response)
    with open_client(server.url, retry=attrs.evolve(FAST, max_attempts=4)) as client:
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        with pytest.raises(tw.SequenceConflictError):
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1, 1, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sequence conflict: expected 1, got 5.", 1),
        ('{"detail":{"code":"sequence_conflict","expected":3,"got":5}}', 3),
        ('{"error":{"message":"seq_id out of order","next_seq_id":9}}', 9),
        ("seq_id 5 is too low: expected 8 or higher; seq_ids only go up", 8),
        ("got seq_id 5 but last seq_id was 7", 8),
        ("sequence number 5 must be greater than 6", 7),
        ("out of order: expected seq_id=2, received seq_id=5", 2),
        ("Training request sequence number was reused", None),
        ("seq_id 5 was used by another request; take the next free one", None),
        ("Sequence conflict: expected 5, got 5.", None),
        ("Sequence conflict: expected 0, got 5.", 0),
        (f"Sequence conflict: expected {2**31 - 1}, got 5.", 2**31 - 1),
        (f"Sequence conflict: expected {2**31}, got 5.", None),
        ("seq_id 5: the last one was 0", 1),
        ("SEQ_NUM 5 is wrong, NEXT is 6", 6),
        ("out-of-sequence; must be 4", 4),
        ('{"detail":"sequence conflict","next":true,"expected_seq":2}', 2),
        ('{"detail":"sequence conflict","nested":[{"other":1},{"expectedid":4}]}', 4),
        ('{"detail":"sequence conflict: last was 8","expected":"9"}', 9),
        ("[1, sequence conflict", None),
    ],
)
def test_expected_seq_id_is_read_from_the_response(text: str, expected: int | None) -> None:
    """Servers return it in text or in a field; an implausible number is ignored."""
    error = status_error(409)("conflict", ResponseInfo(status_code=409, text=text))
    conflict = sequence_conflict(error, 5)
    assert conflict is not None
    assert conflict.expected_seq_id == expected


@pytest.mark.parametrize(
    "error",
    [
        status_error(409)("x", ResponseInfo(status_code=409, text="checkpoint 'a' already exists")),
        status_error(400)("x", ResponseInfo(status_code=400, text="LoadWeights is not permitted with seq_id 5")),
        status_error(400)("x", ResponseInfo(status_code=400, text="sequence length 5 is too long: expected 4")),
        status_error(500)("x", ResponseInfo(status_code=500, text="Sequence conflict: expected 1, got 5")),
        RequestFailedError("sequences must have 5 tokens, expected 7"),
        tw.APIConnectionError(),
    ],
    ids=str,
)
def test_other_errors_are_not_conflicts(error: tw.TinkerError) -> None:
    """Only errors that are certainly about the seq_id are resent under another one."""
    assert sequence_conflict(error, 5) is None


@pytest.mark.parametrize("status", [400, 412, 422])
def test_other_status_is_a_conflict_if_it_has_both_seq_ids(status: int) -> None:
    """The text must name the seq_id of the request, as a number of its own, and another one."""

    def read(text: str) -> tw.SequenceConflictError | None:
        return sequence_conflict(status_error(status)("x", ResponseInfo(status_code=status, text=text)), 5)

    conflict = read("sequence conflict: expected 3, got 5")
    assert conflict is not None
    assert (conflict.seq_id, conflict.expected_seq_id, conflict.status_code) == (5, 3, status)
    assert "the request had seq_id 5, and the server expects 3" in str(conflict)
    for text in ("sequence conflict: expected 3", "sequence conflict: expected 3, got 15", "seq_id 5 was wrong"):
        assert read(text) is None
    assert read("sequence conflict: expected 3, got 51") is None


def test_failed_operation_may_report_a_conflict() -> None:
    """The failure of an operation becomes a conflict of status 409; without a number, the error expects another one."""
    conflict = sequence_conflict(RequestFailedError("sequence conflict: expected 3, got 5"), 5)
    assert conflict is not None
    assert (conflict.expected_seq_id, conflict.status_code) == (3, 409)
    assert conflict.response.text == "sequence conflict: expected 3, got 5"
    error = status_error(409)("used", ResponseInfo(status_code=409), {"detail": "sequence conflict"})
    assert sequence_conflict(error, 5) is None
    error = status_error(409)("sequence conflict", ResponseInfo(status_code=409), {"detail": 1})
    conflict = sequence_conflict(error, 5)
    assert conflict is not None
    assert conflict.body == {"detail": 1}
    assert "expects another one" in str(conflict)


@given(st.text(), st.integers(0, 2**40))
def test_any_text_is_read_without_an_error(text: str, seq_id: int) -> None:
    """For any text of a server, the result is a valid seq_id or None."""
    error = status_error(409)("x", ResponseInfo(status_code=409, text=f"seq_id {text}"))
    conflict = sequence_conflict(error, seq_id)
    assert conflict is None or conflict.expected_seq_id is None or 0 <= conflict.expected_seq_id < 2**31
