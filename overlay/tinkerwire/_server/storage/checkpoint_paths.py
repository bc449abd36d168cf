"""Names of checkpoints, and the tinker:// paths under which they are known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

import attrs

from tinkerwire._server.http.openapi import Json
from tinkerwire._server.http.responses import invalid
from tinkerwire_base.mixins.checkpoints import CHECKPOINT_KINDS, TINKER_SCHEME
from tinkerwire_generated.models import ParsedCheckpointTinkerPath

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=+@:-]{0,127}")
LONGEST_FILE = 200
"""Characters of a file's name; file systems take 255, ending included."""

WEIGHTS = "weights"
SAMPLER_WEIGHTS = "sampler_weights"
EXTERNAL_WEIGHTS = "external_weights"
KINDS: Mapping[str, str] = {**CHECKPOINT_KINDS, EXTERNAL_WEIGHTS: "external"}
"""The middle part of a path, and what such a checkpoint is for."""


def kinds_in(document: Json) -> list[str]:
    """The kinds of checkpoints in the contract of one wire version."""
    types = document["components"]["schemas"]["CheckpointType"]["enum"]
    return [kind for kind, checkpoint_type in KINDS.items() if checkpoint_type in types]


@attrs.frozen
class CheckpointKey:
    """Which checkpoint: its run, its kind (one of :data:`KINDS`), and its name."""

    run_id: str
    kind: str
    name: str

    @property
    def checkpoint_id(self) -> str:
        """Its name within the run: ``weights/0001``."""
        return f"{self.kind}/{self.name}"

    @property
    def checkpoint_type(self) -> str:
        """What it is for: training, sampler or external."""
        return KINDS[self.kind]

    @property
    def tinker_path(self) -> str:
        """Its name everywhere: ``tinker://RUN/weights/0001``."""
        return f"{TINKER_SCHEME}{self.run_id}/{self.checkpoint_id}"


def file_name(name: str) -> str:
    """A checkpoint's name as one of a file, without its ending: characters that not all systems have take three."""
    return quote(name, safe="=+@")


def checked_name(field: str, name: str) -> str:
    """The name itself; Refusal 422 for one that could not be a file or the end of a path."""
    if not is_name(name):
        raise invalid(
            field,
            f"{name[:200]!r} is no name for a checkpoint; use 1 to 128 of the letters A to Z, digits and ._=+@:- and "
            f"start with a letter, digit or underscore; a colon counts as 3 of at most {LONGEST_FILE}",
        )
    return name


def is_name(name: object) -> bool:
    """Return whether a checkpoint can have a name."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None and len(file_name(name)) <= LONGEST_FILE


def read_path(field: str, tinker_path: str) -> CheckpointKey:
    """The checkpoint that a path names; Refusal 422 when it is not such a path."""
    try:
        parsed = ParsedCheckpointTinkerPath.from_tinker_path(tinker_path)
    except ValueError as error:
        raise invalid(field, str(error)) from None
    kind, _, name = parsed.checkpoint_id.partition("/")
    return CheckpointKey(parsed.training_run_id, kind, name)
