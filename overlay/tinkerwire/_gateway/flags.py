"""Flags of client/config and client/dynamic_config that are true of a client's and an upstream's wire together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._server.http.openapi import Document
from .._wire.dialect import BATCH_OPERATIONS, Dialect

OLD_CHUNK_LEN = 128
"""Maximum number of datums in a batch of the clients for which servers without client/config were made."""
FLAGGED_OPERATIONS: Mapping[str, str] = {
    "sample_use_retrieve_futures": "retrieve_futures",
    "custom_loss_server_side": "create_custom_loss",
    "sample_join_sampling_session": "join_sampling_session",
    "sample_cancel_enabled": "cancel_future",
}
"""Flags that make clients use an operation."""
GRPC_FLAGS = ("grpc_target", "enable_grpc_retrieve_future")
"""Flags that would lead clients past the gateway."""


def fixed_flags(document: Document, upstream: Mapping[str, Any] | None, dialect: Dialect, *, own_key: bool) -> Document:
    """Return the flags of client/config.

    Args:
        document: the contract of the client's version.
        upstream: the upstream's flags; None if it has no client/config.
        dialect: the dialect of the upstream.
        own_key: the gateway sends a key of its own to the upstream.
    """
    flags = _flags(document, "ClientConfigResponse", upstream, dialect)
    has_protobuf = dialect.protobuf_operations == BATCH_OPERATIONS
    values: dict[str, Any] = {
        "pjwt_auth_enabled": bool(flags.get("pjwt_auth_enabled"))
        and not own_key
        and dialect.may_have_operation("auth_token"),
        "proto_write_fwdbwd": has_protobuf,
        "fwd_via_fwdbwd": has_protobuf,
        "proto_compress_fwdbwd": has_protobuf and dialect.config.proto_compress_fwdbwd,
        "create_model_via_load_weights": dialect.creates_model_on_load,
    }
    if upstream is None:
        # Such a server expects the chunks of a batch one after another.
        values |= {"parallel_fwdbwd_chunks": False, "fwdbwd_max_chunk_len": OLD_CHUNK_LEN}
    if own_key:
        values["credential_default_source"] = "api_key"
    return {name: values.get(name, value) for name, value in flags.items()}


def dynamic_flags(document: Document, upstream: Mapping[str, Any] | None, dialect: Dialect) -> Document:
    """Return the flags of client/dynamic_config; the arguments are those of :func:`fixed_flags`."""
    return _flags(document, "ClientDynamicConfigResponse", upstream, dialect)


def _flags(document: Document, schema: str, upstream: Mapping[str, Any] | None, dialect: Dialect) -> Document:
    properties: Document = document["components"]["schemas"][schema]["properties"]
    known = {} if upstream is None else upstream
    flags = {
        name: known.get(name, detail.get("default")) if name not in GRPC_FLAGS else detail.get("default")
        for name, detail in properties.items()
    }
    for name, operation in FLAGGED_OPERATIONS.items():
        if name in flags:
            flags[name] = bool(known.get(name, False)) and dialect.may_have_operation(operation)
    return flags
