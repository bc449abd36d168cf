"""Settings of recovery, and the report about one."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from tinkerwire_base.errors import (
    FutureExpiredError,
    NotFoundError,
    PrecedingOperationError,
    SessionExpiredError,
    TinkerError,
)
from tinkerwire_base.validators import require_bool, require_int

MODEL_OPERATIONS = frozenset(
    {"Forward", "ForwardBackward", "OptimStep", "SaveWeights", "SaveWeightsForSampler", "GetInfo"}
)
"""Operations for which the server reports only a lost model as missing."""

MAX_RETAINED_SAVES = 4
"""Number of saves that may fail in a row before the steps since the last one are given up."""


@attrs.frozen(kw_only=True)
class RecoveryReport:
    """One recovery, for the function in ``Recovery.on_recovery``."""

    error: TinkerError
    """The error by which the loss showed."""
    path: str
    """The save from which the new model started; empty for new weights, if the first save was not finished."""
    step: int
    """Number of optimizer steps of this client in that save."""
    lost_steps: int
    """Number of finished optimizer steps that the new model lacks; 0 if they were replayed."""
    replayed_steps: int
    """Number of finished optimizer steps that were taken again on the new model."""
    resent: int
    """Number of unfinished operations that were resent."""


def _at_least_one(_: object, attribute: attrs.Attribute[int], value: int) -> None:
    require_int(attribute.name, value)
    if value < 1:
        raise ValueError(f"Recovery.{attribute.name} must be at least 1, got {value}")


@attrs.frozen(kw_only=True)
class Recovery:
    """Saves on its own, and resumption from the last save after the server lost the session or the model.

    Example:
        >>> def report(recovery):
        ...     print(recovery.error, recovery.lost_steps)
        >>> with tinker.ServiceClient(base_url="local") as service:
        ...     training = service.create_lora_training_client(
        ...         "tinkerwire/byte-nano", rank=4, recover=tinker.Recovery(every=20, keep=2, on_recovery=report)
        ...     ).result()
    """

    every: int = attrs.field(default=20, validator=_at_least_one)
    """Number of optimizer steps between two saves."""
    keep: int = attrs.field(default=2, validator=_at_least_one)
    """Number of saves to keep; older ones are deleted. The last ones stay after the program."""
    replay: bool = attrs.field(default=False, validator=lambda _, field, value: require_bool(field.name, value))
    """Repeat the finished steps since the save; by default they are lost. Their batches stay in memory until the next
    save is finished. If saves fail, all but :data:`MAX_RETAINED_SAVES` times ``every`` steps are lost."""
    attempts: int = attrs.field(default=5, validator=_at_least_one)
    """Number of recoveries without a finished operation between them; then the error is raised."""
    on_recovery: Callable[[RecoveryReport], object] | None = attrs.field(default=None)
    """Function that receives a report of each recovery, on a thread for callbacks."""

    def __attrs_post_init__(self) -> None:
        """Raise TypeError if the callback is not a function."""
        if self.on_recovery is not None and not callable(self.on_recovery):
            raise TypeError(
                f"on_recovery: expected a function of a RecoveryReport, got {type(self.on_recovery).__name__}"
            )


def shows_loss(error: BaseException, kind: str) -> bool:
    """Return whether the error of an operation shows that the server lost the session, the model or the result."""
    if isinstance(error, SessionExpiredError | FutureExpiredError):
        return True
    if isinstance(error, PrecedingOperationError) and error.__cause__ is not None:
        return shows_loss(error.__cause__, "ForwardBackward")
    return isinstance(error, NotFoundError) and kind in MODEL_OPERATIONS
