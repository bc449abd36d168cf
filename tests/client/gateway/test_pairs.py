"""Every request of every pair of wires: translated there and back it is equal, or it is refused with a reason."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import orjson
import pytest

from support.drawing import examples
from support.instances import Instances
from tinkerwire._gateway.adaptation import adapt_body
from tinkerwire._gateway.front import Front, front_of
from tinkerwire._gateway.relay import batch_operation
from tinkerwire._server.http.responses import HttpError
from tinkerwire._wire import codec
from tinkerwire._wire.dialect import BATCH_OPERATIONS, Dialect
from tinkerwire_base.call import JSON, Call, default_converter
from tinkerwire_base.errors import DialectError
from tinkerwire_generated import models
from tinkerwire_generated.operations import OPERATIONS

VERSIONS = ("0.3.0", "0.4.1", "0.7.0", "0.16.1", "0.18.2", "0.24.1", "0.25.0", "0.30.4", "0.38.0")
EXAMPLES = 6
CLIENT_STEPS = frozenset({"client_config", "client_dynamic_config", "auth_token"})
"""Operations that the gateway answers itself; their requests have one form."""
EMULATED_FIELDS = frozenset({"process_uuid", "display_name"})
"""Fields that the gateway leaves out or derives, as its table lists."""

SAME_AS_ABSENT = (
    ("loss_fn_config", {}),
    ("optimizer_config", {"type": "adamw"}),
    ("record_stability_info", False),
)
"""Values that some form of a wire cannot distinguish from none."""


@cache
def dialect_of(version: str) -> Dialect:
    """Return the dialect of an upstream of a version."""
    return Dialect.for_version(version)


@cache
def requests_of(version: str) -> list[tuple[str, Any]]:
    """Return requests of a client of a version: the name of the operation, and the model of its body."""
    front = front_of(version)
    instances = Instances(front.document)
    found: list[tuple[str, Any]] = []
    for item in front.document["paths"].values():
        for operation in item.values():
            schema = operation.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema", {})
            name = schema.get("$ref", "").rpartition("/")[2]
            if not name:
                continue
            for value in examples(instances.of(name, unknown_keys=False), EXAMPLES):
                body = read(front, operation["operationId"], JSON, orjson.dumps(value))
                if body is not None:
                    found.append((operation["operationId"], body))
    return found


def read(front: Front, name: str, media: str, content: bytes) -> Any:
    """Return the body that a server of a version reads; None if it rejects the body."""
    try:
        return front.validator.parse_body(OPERATIONS[name], content, {"content-type": media})
    except HttpError:
        return None


def translate(name: str, body: Any, version: str) -> Any:
    """Return a body as the server of a version reads it."""
    dialect = dialect_of(version)
    name = batch_operation(body) or name
    path = dict.fromkeys(re.findall(r"{(\w+)}", OPERATIONS[name].path), "id")
    request = codec.encode(Call(OPERATIONS[name], path=path, body=adapt_body(body, dialect)), dialect)
    received = read(
        front_of(version),
        "forward_backward" if name in dialect.protobuf_operations else name,
        request.headers["content-type"],
        request.content or b"",
    )
    assert received is not None, f"{name}: the server of wire {version} rejects what it gets"
    return received


def plain(body: Any) -> Any:
    """Return a body as JSON, without the fields that are emulated and without forms that mean the same."""
    value = orjson.loads(default_converter().encode(body))
    plain_value: dict[str, Any] = _plain_value(value)
    return {key: item for key, item in plain_value.items() if key not in EMULATED_FIELDS}


def _plain_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "dtype" in value:
        # JSON may write a float32 with more digits, and may leave out the shape of a vector.
        kind = np.float32 if value["dtype"] == "float32" else np.int64
        data = np.asarray(value["data"], kind).tolist()
        shape = value.get("shape") or ([len(data)] if value.get("sparse_crow_indices") is None else None)
        return {**value, "data": data, "shape": shape}
    return {key: _plain_value(item) for key, item in value.items() if (key, item) not in SAME_AS_ABSENT}


@pytest.mark.parametrize("client", VERSIONS)
@pytest.mark.parametrize("server", VERSIONS)
def test_requests_are_equal_there_and_back_or_refused(client: str, server: str) -> None:
    """A refusal names a thing of the request and versions that have it, or a number that the server's form cannot hold.

    Another client of the server's version cannot express what is refused either.
    """
    translated = 0
    for name, body in requests_of(client):
        if name in CLIENT_STEPS:
            continue
        try:
            there = translate(name, body, server)
            back = translate(name, there, client)
        except DialectError as error:
            assert error.what, error
            continue
        except (ValueError, OverflowError, TypeError) as error:
            # Protobuf has numbers of 32 bits, and JSON only finite ones.
            assert name in BATCH_OPERATIONS, error
            continue
        assert plain(back) == plain(body), name
        translated += 1
    assert translated


def test_equal_versions_refuse_nothing() -> None:
    for version in VERSIONS:
        for name, body in requests_of(version):
            if name in BATCH_OPERATIONS or name in CLIENT_STEPS:
                continue
            assert plain(translate(name, body, version)) == plain(body)


def test_fields_of_one_side_are_refused_by_name() -> None:
    """Each field that 0.38.0 has and 0.16.1 lacks is in the error of a request that sets it."""
    body = models.SampleRequest(
        prompt=models.ModelInput(chunks=[]), sampling_params=models.SamplingParams(), sampling_session_id="s"
    )
    for field, value in {
        "topk_sample_logprobs": 1,
        "prompt_alt_tokens_k": 1,
        "prompt_logprobs_last_n": 1,
        "record_stability_info": True,
    }.items():
        changed = models.SampleRequest(
            prompt=body.prompt, sampling_params=body.sampling_params, sampling_session_id="s", **{field: value}
        )
        with pytest.raises(DialectError, match=field):
            translate("asample", changed, "0.16.1")
