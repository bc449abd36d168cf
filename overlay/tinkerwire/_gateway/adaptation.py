"""Values that mean the same in two wire versions but are written differently, or not at all."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from tinkerwire_generated import models
from tinkerwire_generated.availability import FIELD_VERSIONS, PARAMETER_VERSIONS

from .._server.http.openapi import Document, resolve_reference
from .._wire.dialect import Dialect


def adapt_body(body: Any, dialect: Dialect) -> Any:
    """Return a request whose values that the upstream lacks are replaced where the meaning stays the same.

    What remains and cannot be sent raises DialectError when the request is encoded.
    """
    adapt = _ADAPTATIONS.get(type(body).__name__)
    return body if adapt is None else adapt(body, dialect)


def adapt_query(operation: str, query: Mapping[str, Any], document: Document, dialect: Dialect) -> dict[str, Any]:
    """Return the query without parameters that the upstream lacks and that have their default value.

    Args:
        operation: the operation.
        query: the parameters that the client sent.
        document: the contract of the client's version.
        dialect: the dialect of the upstream.
    """
    versions = PARAMETER_VERSIONS.get(operation, {})
    absent = {name for name in query if not dialect.may_have(versions.get(name))}
    if not absent:
        return dict(query)
    defaults = _defaults(operation, document)
    return {name: value for name, value in query.items() if name not in absent or defaults.get(name) != value}


def _defaults(operation: str, document: Document) -> dict[str, Any]:
    parameters = next(
        item.get("parameters", [])
        for path in document["paths"].values()
        for item in path.values()
        if item["operationId"] == operation
    )
    schemas = {
        item["name"]: resolve_reference(document, item["schema"]) for item in parameters if item["in"] == "query"
    }
    return {name: schema["default"] for name, schema in schemas.items() if "default" in schema}


def _has(dialect: Dialect, model: str, field: str) -> bool:
    return dialect.may_have(FIELD_VERSIONS.get(model, {}).get(field))


def _adapt_session(body: models.CreateSessionRequest, dialect: Dialect) -> models.CreateSessionRequest:
    if body.display_name is None or _has(dialect, "CreateSessionRequest", "display_name"):
        return body
    return attrs.evolve(body, display_name=None)


def _adapt_load(body: models.LoadWeightsRequest, dialect: Dialect) -> models.LoadWeightsRequest:
    changes: dict[str, Any] = {}
    if not _has(dialect, "LoadWeightsRequest", "optimizer"):
        if body.optimizer is False:
            changes["optimizer"] = None
    elif body.optimizer is None:
        changes["optimizer"] = False
    is_plain = isinstance(body.optimizer_config, models.AdamOptimizerConfig)
    if is_plain and not _has(dialect, "LoadWeightsRequest", "optimizer_config"):
        changes["optimizer_config"] = None
    return attrs.evolve(body, **changes) if changes else body


def _adapt_telemetry(body: models.TelemetrySendRequest, dialect: Dialect) -> models.TelemetrySendRequest:
    has_process = _has(dialect, "TelemetrySendRequest", "process_uuid")
    if has_process and body.process_uuid is None:
        # One process has one session in the versions that send none.
        return attrs.evolve(body, process_uuid=str(uuid.uuid5(uuid.NAMESPACE_OID, body.session_id)))
    return body if has_process or body.process_uuid is None else attrs.evolve(body, process_uuid=None)


def _adapt_sample(body: models.SampleRequest, dialect: Dialect) -> models.SampleRequest:
    prompt = _adapt_input(body.prompt, dialect)
    changes: dict[str, Any] = {} if prompt is body.prompt else {"prompt": prompt}
    if body.record_stability_info is False and not _has(dialect, "SampleRequest", "record_stability_info"):
        changes["record_stability_info"] = None
    return attrs.evolve(body, **changes) if changes else body


def _adapt_forward_backward(body: models.ForwardBackwardRequest, dialect: Dialect) -> models.ForwardBackwardRequest:
    batch = _adapt_batch(body.forward_backward_input, dialect)
    return body if batch is body.forward_backward_input else attrs.evolve(body, forward_backward_input=batch)


def _adapt_forward(body: models.ForwardRequest, dialect: Dialect) -> models.ForwardRequest:
    batch = _adapt_batch(body.forward_input, dialect)
    return body if batch is body.forward_input else attrs.evolve(body, forward_input=batch)


def _adapt_batch(batch: models.ForwardBackwardInput, dialect: Dialect) -> models.ForwardBackwardInput:
    data = [_adapt_datum(datum, dialect) for datum in batch.data]
    if all(new is old for new, old in zip(data, batch.data, strict=True)):
        return batch
    return attrs.evolve(batch, data=data)


def _adapt_datum(datum: models.Datum, dialect: Dialect) -> models.Datum:
    changes: dict[str, Any] = {}
    model_input = _adapt_input(datum.model_input, dialect)
    if model_input is not datum.model_input:
        changes["model_input"] = model_input
    has_spans = datum.model_input_spans is not None or datum.loss_fn_input_spans is not None
    if has_spans and not (_has(dialect, "Datum", "model_input_spans") and dialect.protobuf_operations):
        # Spans record where tokens came from; they change no result.
        changes |= {"model_input_spans": None, "loss_fn_input_spans": None}
    return attrs.evolve(datum, **changes) if changes else datum


def _adapt_input(model_input: models.ModelInput, dialect: Dialect) -> models.ModelInput:
    if all(isinstance(chunk, models.EncodedTextChunk) for chunk in model_input.chunks):
        return model_input
    has_sizes = _has(dialect, "ImageChunk", "tokens")
    chunks = [chunk if has_sizes else _adapt_image(chunk) for chunk in model_input.chunks]
    return attrs.evolve(model_input, chunks=chunks)


def _adapt_image(chunk: Any) -> Any:
    """Return an image with the number of its tokens under its later name; its bytes hold its size."""
    if not isinstance(chunk, models.ImageChunk | models.ImageAssetPointerChunk) or chunk.tokens is None:
        return chunk
    return attrs.evolve(chunk, expected_tokens=chunk.tokens, tokens=None, height=None, width=None)


_ADAPTATIONS: Mapping[str, Callable[[Any, Dialect], Any]] = {
    "CreateSessionRequest": _adapt_session,
    "LoadWeightsRequest": _adapt_load,
    "TelemetrySendRequest": _adapt_telemetry,
    "SampleRequest": _adapt_sample,
    "ForwardBackwardRequest": _adapt_forward_backward,
    "ForwardRequest": _adapt_forward,
}
