"""Encoding of calls and decoding of results, as JSON or protobuf, in the dialect of a server."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, cast

import attrs

from tinkerwire_base.call import PROTOBUF, Call, WireRequest, WireResponse
from tinkerwire_base.errors import DialectError
from tinkerwire_base.lazy_numpy import np
from tinkerwire_base.tensors import refuse_non_finite
from tinkerwire_generated import models
from tinkerwire_generated.api.training.forward_backward import OPERATION as FORWARD_BACKWARD
from tinkerwire_generated.protobuf import MESSAGE_VERSIONS

from .._futures.logger import log
from .dialect import BATCH_OPERATIONS, Dialect


def refuse_non_finite_batch(request: models.ForwardBackwardRequest | models.ForwardRequest, dialect: Dialect) -> None:
    """Raise ValueError, with the place, for NaN or infinity in a batch; orjson would write null in its place."""
    batch = request.forward_input if isinstance(request, models.ForwardRequest) else request.forward_backward_input
    reason = f"JSON has only finite numbers, and batches are sent as JSON: {dialect}"
    for name, value in (batch.loss_fn_config or {}).items():
        if not isinstance(value, str) and not math.isfinite(value):
            raise ValueError(f"loss_fn_config[{name!r}]: {value!r} cannot be sent, because {reason}")
    for position, datum in enumerate(batch.data):
        for name, tensor in datum.loss_fn_inputs.items():
            if tensor.dtype != "int64" and not _is_finite(tensor.raw):
                refuse_non_finite(f"data[{position}].loss_fn_inputs[{name!r}]", tensor.values(), reason)


def _is_finite(numbers: Any) -> bool:
    """Check fast; False where a closer look is needed."""
    if isinstance(numbers, list | tuple):
        # The sum of numbers that are not all finite never is.
        return math.isfinite(sum(numbers))
    return bool(isinstance(numbers, np.ndarray) and numbers.dtype == np.float32 and np.isfinite(numbers).all())


def encode(call: Call[Any], dialect: Dialect) -> WireRequest:
    """Return the request of a call in a dialect.

    Raises:
        DialectError: the server certainly lacks the call, or a part of its body; the error has the dialect.
        TypeError, ValueError: a value cannot be sent.
    """
    try:
        if call.operation.name in dialect.protobuf_operations:
            return _binary(call, dialect)
        dialect.check(call)
        if call.operation.name in BATCH_OPERATIONS:
            refuse_non_finite_batch(call.body, dialect)
        return call.encode(dialect.converter)
    except DialectError as error:
        error.dialect = dialect
        raise


def is_protobuf(answer: WireResponse) -> bool:
    """Return whether a response is protobuf, regardless of the accepted media types."""
    return PROTOBUF in answer.headers.get("content-type", "")


def is_decodable(result_type: type) -> bool:
    """Check whether a protobuf message has the name of a type of results."""
    return getattr(result_type, "__name__", "") in MESSAGE_VERSIONS


def decode(content: bytes, result_type: type) -> Any:
    """Return the result of a protobuf message.

    Raises:
        ValueError: the message is malformed, or no message has results of the type.
    """
    # The message classes take time to load, and many clients never see one.
    from . import protobuf  # noqa: PLC0415

    if not is_decodable(result_type):
        raise ValueError(f"{result_type.__name__}: the response is protobuf, but this type has no protobuf message")
    return protobuf.decode_result(content, result_type)


@cache
def find_zstd() -> Callable[[bytes], bytes] | None:
    """Return the function that compresses with zstd; None, with a warning, if no package has one."""
    with suppress(ImportError):  # Python 3.14
        return cast("Callable[[bytes], bytes]", import_module("compression.zstd").compress)
    with suppress(ImportError):
        import zstandard  # noqa: PLC0415

        return lambda content: zstandard.ZstdCompressor().compress(content)
    log.warning(
        "the server asks for compressed batches, and no package for zstd is installed: batches are sent "
        "uncompressed; pip install 'tinkerwire[zstd]'"
    )
    return None


def _binary(call: Call[Any], dialect: Dialect) -> WireRequest:
    from . import protobuf  # noqa: PLC0415

    content = protobuf.encode_request(call.body, dialect.max_version, dialect.min_version)
    # As protobuf, forward and forward_backward are one call; a field of the message distinguishes them.
    request = Call(FORWARD_BACKWARD).encode(dialect.converter)
    headers = {**request.headers, "content-type": PROTOBUF}
    compress = find_zstd() if dialect.config.proto_compress_fwdbwd else None
    if compress is not None:
        content = compress(content)
        headers["content-encoding"] = "zstd"
    return attrs.evolve(request, headers=headers, content=content)


def load_decoder(result_type: type) -> None:
    """Load the protobuf message of a type of results, and numpy, which takes a fifth of a second once."""
    from tinkerwire_generated.protobuf import message_class  # noqa: PLC0415

    from . import protobuf  # noqa: F401, PLC0415

    if is_decodable(result_type):
        message_class(result_type.__name__)
        np.empty(0)
