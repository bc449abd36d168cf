"""Mixins of checkpoints: their ``tinker://`` paths and their pages in the console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from .. import console_urls
from ..short_repr import short_repr

TINKER_SCHEME = "tinker://"
CHECKPOINT_KINDS: Mapping[str, str] = {
    "weights": "training",
    "sampler_weights": "sampler",
    "external_weights": "external",
}
"""The middle part of a tinker path, and its checkpoint type."""


def split_tinker_path(tinker_path: str) -> list[str]:
    """Split a checkpoint path into run, kind and name.

    Raises:
        ValueError: the text is not a checkpoint path.
    """
    is_path = isinstance(tinker_path, str) and tinker_path.startswith(TINKER_SCHEME)
    parts = tinker_path[len(TINKER_SCHEME) :].split("/") if is_path else []
    if len(parts) != 3 or not all(parts) or parts[1] not in CHECKPOINT_KINDS:
        forms = " or ".join(f"{TINKER_SCHEME}RUN/{kind}/NAME" for kind in CHECKPOINT_KINDS)
        shown = repr(tinker_path) if isinstance(tinker_path, str) else short_repr(tinker_path)
        raise ValueError(f"{shown} is not a checkpoint path; expected {forms}")
    return parts


class CheckpointPathMixin:
    """The parts of ``tinker://RUN/KIND/NAME``, where KIND is weights, sampler_weights or external_weights."""

    __slots__ = ()

    @classmethod
    def from_tinker_path(cls, tinker_path: str) -> Self:
        """Parse a path.

        Raises:
            ValueError: the text is not a checkpoint path.
        """
        parts = split_tinker_path(tinker_path)
        model: Any = cls
        path: Self = model(
            tinker_path=tinker_path,
            training_run_id=parts[0],
            checkpoint_type=CHECKPOINT_KINDS[parts[1]],
            checkpoint_id=f"{parts[1]}/{parts[2]}",
        )
        return path


class SaveWeightsMixin:
    """Saved weights and their page."""

    __slots__ = ()
    if TYPE_CHECKING:
        path: str

    def get_console_url(self) -> str:
        """Return the URL of the checkpoint's page in the Tinker console.

        Raises:
            ValueError: ``path`` is not a checkpoint path.
        """
        run, *checkpoint = split_tinker_path(self.path)
        return console_urls.checkpoint_page(run, "/".join(checkpoint))


class SaveSamplerWeightsMixin(SaveWeightsMixin):
    """Weights that were saved for sampling."""

    __slots__ = ()

    def get_playground_url(self) -> str:
        """Return the URL of the page in the Tinker console where a user chats with the weights."""
        return console_urls.playground_page(self.path)
