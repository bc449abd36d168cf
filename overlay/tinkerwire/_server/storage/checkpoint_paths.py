"""Names of checkpoints and their tinker:// paths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

import attrs

from tinkerwire._server.http.openapi import Document
from tinkerwire._server.http.responses import field_error
from tinkerwire_generated.constants import CHECKPOINT_SEGMENTS, TINKER_SCHEME
from tinkerwire_generated.models import ParsedCheckpointTinkerPath

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=+@:-]{0,127}")
MAX_FILE_NAME_LENGTH = 200
"""Maximum length of a file name without extension; file systems allow 255 characters in total."""

WEIGHTS = CHECKPOINT_SEGMENTS["training"]
SAMPLER_WEIGHTS = CHECKPOINT_SEGMENTS["sampler"]
EXTERNAL_WEIGHTS = CHECKPOINT_SEGMENTS["external"]
KINDS: Mapping[str, str] = {segment: kind for kind, segment in CHECKPOINT_SEGMENTS.items()}
"""Checkpoint types by the middle part of a path."""


def list_kinds(document: Document) -> list[str]:
    """Return the kinds of checkpoints in the contract of one wire version."""
    types = document["components"]["schemas"]["CheckpointType"]["enum"]
    return [kind for kind, checkpoint_type in KINDS.items() if checkpoint_type in types]


@attrs.frozen
class CheckpointKey:
    """Identity of a checkpoint: its run, its kind (one of :data:`KINDS`) and its name."""

    run_id: str
    kind: str
    name: str

    @property
    def checkpoint_id(self) -> str:
        """Id of the checkpoint within its run, such as ``weights/0001``."""
        return f"{self.kind}/{self.name}"

    @property
    def checkpoint_type(self) -> str:
        """Type of the checkpoint: training, sampler or external."""
        return KINDS[self.kind]

    @property
    def tinker_path(self) -> str:
        """Path of the checkpoint, such as ``tinker://RUN/weights/0001``."""
        return f"{TINKER_SCHEME}{self.run_id}/{self.checkpoint_id}"


def to_file_name(name: str) -> str:
    """Return the file name of a checkpoint without extension; some characters are encoded as three characters."""
    return quote(name, safe="=+@")


def validate_name(field: str, name: str) -> str:
    """Return the name of a checkpoint unchanged.

    Args:
        field: the field of the request that has the name.
        name: the name.

    Raises:
        HttpError: 422 for a name that cannot be a file name or the end of a path.
    """
    if not is_name(name):
        raise field_error(
            field,
            f"checkpoint names must have 1 to 128 letters, digits or characters of ._=+@:- and start with a letter, "
            f"digit or underscore (a colon counts as 3 of at most {MAX_FILE_NAME_LENGTH}), got {name[:200]!r}",
        )
    return name


def is_name(name: object) -> bool:
    """Return whether a value is a valid name of a checkpoint."""
    return (
        isinstance(name, str) and _NAME.fullmatch(name) is not None and len(to_file_name(name)) <= MAX_FILE_NAME_LENGTH
    )


def read_path(field: str, tinker_path: str) -> CheckpointKey:
    """Parse a tinker:// path.

    Args:
        field: the field of the request that has the path.
        tinker_path: the path.

    Raises:
        HttpError: 422 for an invalid path.
    """
    try:
        parsed = ParsedCheckpointTinkerPath.from_tinker_path(tinker_path)
    except ValueError as error:
        raise field_error(field, str(error)) from None
    kind, _, name = parsed.checkpoint_id.partition("/")
    return CheckpointKey(parsed.training_run_id, kind, name)
