"""Mixins of checkpoints: their ``tinker://`` paths and their pages in the console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from .. import console_urls
from ..short_repr import short_repr


class TinkerPathMixin:
    """A model with a ``tinker://RUN/SEGMENT/NAME`` path; the segment gives the type of the checkpoint."""

    __slots__ = ()
    _constants = ("CHECKPOINT_SEGMENTS", "TINKER_SCHEME")
    if TYPE_CHECKING:
        _checkpoint_segments: Mapping[str, str]
        _tinker_scheme: str

    @classmethod
    def _split_path(cls, tinker_path: str) -> list[str]:
        """Split a checkpoint path into run, segment and name.

        Raises:
            ValueError: the text is not a checkpoint path.
        """
        scheme, segments = cls._tinker_scheme, cls._checkpoint_segments.values()
        is_path = isinstance(tinker_path, str) and tinker_path.startswith(scheme)
        parts = tinker_path[len(scheme) :].split("/") if is_path else []
        if len(parts) != 3 or not all(parts) or parts[1] not in segments:
            forms = " or ".join(f"{scheme}RUN/{segment}/NAME" for segment in segments)
            shown = repr(tinker_path) if isinstance(tinker_path, str) else short_repr(tinker_path)
            raise ValueError(f"checkpoint path: expected {forms}, got {shown}")
        return parts


class CheckpointPathMixin(TinkerPathMixin):
    """The parts of ``tinker://RUN/SEGMENT/NAME``."""

    __slots__ = ()

    @classmethod
    def from_tinker_path(cls, tinker_path: str) -> Self:
        """Parse a path.

        Raises:
            ValueError: the text is not a checkpoint path.
        """
        parts = cls._split_path(tinker_path)
        types = {segment: kind for kind, segment in cls._checkpoint_segments.items()}
        model: Any = cls
        path: Self = model(
            tinker_path=tinker_path,
            training_run_id=parts[0],
            checkpoint_type=types[parts[1]],
            checkpoint_id=f"{parts[1]}/{parts[2]}",
        )
        return path


class SaveWeightsMixin(TinkerPathMixin):
    """Saved weights and their page."""

    __slots__ = ()
    if TYPE_CHECKING:
        path: str

    def get_console_url(self) -> str:
        """Return the URL of the checkpoint's page in the Tinker console.

        Raises:
            ValueError: ``path`` is not a checkpoint path.
        """
        run, *checkpoint = self._split_path(self.path)
        return console_urls.checkpoint_page(run, "/".join(checkpoint))


class SaveSamplerWeightsMixin(SaveWeightsMixin):
    """Weights that were saved for sampling."""

    __slots__ = ()

    def get_playground_url(self) -> str:
        """Return the URL of the page in the Tinker console where a user chats with the weights."""
        return console_urls.playground_page(self.path)
