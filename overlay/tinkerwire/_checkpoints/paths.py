"""Paths of saved weights: their validation, their kind, and the ids that they contain."""

from __future__ import annotations

from typing import NamedTuple

from tinkerwire_base.validators import require_text
from tinkerwire_generated.constants import CHECKPOINT_SEGMENTS, TINKER_SCHEME

CHECKPOINT_TYPES = {segment: kind for kind, segment in CHECKPOINT_SEGMENTS.items()}
"""The type of a checkpoint by the segment of its path."""


class CheckpointAddress(NamedTuple):
    """The ids of a checkpoint, in the order of the URLs of the REST calls."""

    training_run_id: str
    checkpoint_id: str
    """``weights/NAME``, ``sampler_weights/NAME``, or the rest of a path of another form."""


def parse_checkpoint_kind(path: str) -> str | None:
    """Return the kind of the weights at a path: training, sampler or external; None if the path does not show it."""
    segments = split_path(path)
    return CHECKPOINT_TYPES.get(segments[-2]) if len(segments) > 2 else None


def parse_checkpoint_address(path: str, *, name: str = "tinker_path") -> CheckpointAddress:
    """Return the ids in a path of saved weights with any scheme.

    Args:
        path: the path, as a save returns it.
        name: name of the argument, for the error.

    Raises:
        ValueError: the path does not name both a run and a checkpoint.
        TypeError: the path is not a str.
    """
    validate_path(path, name=name)
    segments = split_path(path)
    if len(segments) < 2:
        raise ValueError(
            f"{name}: {path!r:.200} must name a run and a checkpoint, as in {TINKER_SCHEME}RUN/weights/NAME, for this "
            "call; take the tinker_path of a listed checkpoint"
        )
    if parse_checkpoint_kind(path) is not None:
        return CheckpointAddress("/".join(segments[:-2]), "/".join(segments[-2:]))
    return CheckpointAddress(segments[0], "/".join(segments[1:]))


def reject_path_kind(wrong_kind: str, path: str, purpose: str, *, name: str = "path") -> None:
    """Raise ValueError for a path of the one kind of weights that cannot serve a purpose.

    The client accepts every other path, because the forms of paths differ between servers.

    Args:
        wrong_kind: the kind of weights to reject.
        path: the path, as a save returns it.
        purpose: the purpose, as a verb phrase for the error: ``load training state``.
        name: name of the argument, for the error.

    Raises:
        ValueError: the path is empty, or its weights are of the wrong kind.
        TypeError: the path is not a str.
    """
    validate_path(path, name=name)
    if parse_checkpoint_kind(path) == wrong_kind:
        method = "save_state" if wrong_kind == "sampler" else "save_weights_for_sampler"
        raise ValueError(
            f"{name}: {path!r} holds {wrong_kind} weights, which cannot {purpose}; give a path that {method} returned"
        )


def validate_path(path: str, *, name: str = "path") -> None:
    """Raise an error for a value that cannot be a path of saved weights.

    Raises:
        ValueError: the path is empty.
        TypeError: the path is not a str.
    """
    require_text(name, path)
    if not path.strip():
        raise ValueError(f"{name}: {path!r} is empty; give the .path of the result of a save")


def split_path(path: str) -> list[str]:
    """Return the segments of a path between slashes, without the scheme."""
    scheme, separator, suffix = path.partition("://")
    return [segment for segment in (suffix if separator else scheme).split("/") if segment]
