"""Mixin of a batch and its loss: checks the settings of the loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..validators import require_str
from .normalize import require_float


class LossConfigMixin:
    """A batch and its loss; numbers of ``loss_fn_config`` may be infinite, as protobuf carries infinity."""

    __slots__ = ()
    _converts = ("loss_fn_config",)
    if TYPE_CHECKING:
        loss_fn_config: Any

    def __attrs_post_init__(self) -> None:
        """Normalize and check the fields."""
        config, name = self.loss_fn_config, f"{type(self).__name__}.loss_fn_config"
        if config is None:
            return
        if not isinstance(config, Mapping):
            raise TypeError(f"{name}: expected a dict of name to number or text, got {type(config).__name__}")
        for key, value in config.items():
            require_str(f"{name} key", key)
            if not isinstance(value, str):
                require_float(f"{name}[{key!r}]", value)
