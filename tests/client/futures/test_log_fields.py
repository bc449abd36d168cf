"""Log records name the operation that they are about, in fields of their own."""

from __future__ import annotations

import logging

import pytest

import tinkerwire as tw
from support.clients import PARAMS, PROMPT, open_client
from support.scripted import ScriptedResponse, ScriptedServer, in_order
from tinkerwire._futures import operation_record
from tinkerwire._futures.logger import log


def test_records_have_the_operation(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry, a long wait and an error that nobody retrieves name the id and the kind that a trace has, too."""
    monkeypatch.setattr(operation_record, "FIRST_WAIT_LOG_S", 0.0)
    caplog.set_level(logging.DEBUG, logger="tinkerwire")
    refusal = ScriptedResponse(status=400, body={"detail": "no"})
    server.rules["asample"] = in_order(*[ScriptedResponse(status=500)] * 2, refusal)
    with open_client(server.url) as service:
        sampling = service.create_sampling_client(base_model="base").result()
        future = sampling.sample(PROMPT, 1, PARAMS)
        number = future._record.number
        server.wait_for(future.done, "the sample fails")
        del future
    about = {record.operation_id: record for record in caplog.records if "never retrieved" in record.message}
    assert list(about) == [number]
    assert about[number].operation_kind == "Sample"
    retries = [record for record in caplog.records if "attempt" in record.message and record.operation_id == number]
    assert retries
    assert all(record.operation_kind == "Sample" for record in retries)


def test_records_outside_of_operations_have_empty_fields(caplog: pytest.LogCaptureFixture) -> None:
    log.warning("about nothing in particular")
    (record,) = caplog.records
    assert (record.operation_id, record.operation_kind, record.request_id) == (None, None, None)


def test_request_id_is_that_of_the_server(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    server.on_poll("Sample", lambda _: ScriptedResponse(body={"error": "failed", "category": "server"}))
    with open_client(server.url) as service:
        sampling = service.create_sampling_client(base_model="base").result()
        future = sampling.sample(PROMPT, 1, PARAMS)
        request_id = None
        server.wait_for(future.done, "the sample fails")
        request_id = future.request_id
        assert isinstance(future._future.exception(), tw.RequestFailedError)
        del future
    (record,) = [record for record in caplog.records if "never retrieved" in record.message]
    assert record.request_id == request_id is not None
