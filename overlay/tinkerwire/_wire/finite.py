"""The check that a batch which is sent as JSON has only numbers that JSON can express."""

from __future__ import annotations

import math
from typing import Any

from tinkerwire_base.lazy_numpy import np
from tinkerwire_base.tensors import refuse_non_finite
from tinkerwire_generated.models import ForwardBackwardRequest, ForwardRequest

from .dialect import Dialect


def refuse_non_finite_batch(request: ForwardBackwardRequest | ForwardRequest, dialect: Dialect) -> None:
    """Raise ValueError, with the place, for NaN or infinity in a batch; orjson would write null in its place."""
    batch = request.forward_input if isinstance(request, ForwardRequest) else request.forward_backward_input
    reason = f"JSON has only finite numbers, and batches are sent as JSON: {dialect}"
    for name, value in (batch.loss_fn_config or {}).items():
        if not isinstance(value, str) and not math.isfinite(value):
            raise ValueError(f"loss_fn_config[{name!r}]: {value!r} cannot be sent, {reason}")
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
