"""The base models that a server offers, by the names that it offers them under."""

from __future__ import annotations

from collections.abc import Mapping

from tinkerwire._server.engine import BASE_MODELS, ModelConfig
from tinkerwire._server.http.responses import HttpError


class Catalogue:
    """The engine's base models, and the same ones under further names.

    Args:
        aliases: further names, each with the name of the engine's model that it stands for.

    Raises:
        ValueError: an alias of a model that the engine does not have, or one that names such a model already.
    """

    def __init__(self, aliases: Mapping[str, str]) -> None:
        for alias, name in aliases.items():
            if name not in BASE_MODELS:
                raise ValueError(f"alias {alias!r}: there is no model {name!r}; choose one of {', '.join(BASE_MODELS)}")
            if not alias or alias in BASE_MODELS:
                raise ValueError(f"alias {alias!r} of {name!r}: choose a name that is not empty and that no model has")
        self.models: Mapping[str, ModelConfig] = {
            **BASE_MODELS,
            **{alias: BASE_MODELS[name] for alias, name in aliases.items()},
        }
        """The engine's model behind each name."""

    def get(self, name: str) -> ModelConfig:
        """The engine's model of that name, or Refusal 404."""
        config = self.models.get(name)
        if config is None:
            raise HttpError(404, f"there is no base model {name[:200]!r}; this server has {', '.join(self.models)}")
        return config


def parse_alias(text: str) -> tuple[str, str]:
    """The alias and the model of ``NAME=MODEL``; ValueError without either."""
    alias, _, name = text.partition("=")
    if not alias or not name:
        raise ValueError(f"alias {text!r} is not NAME=MODEL, such as org/model={next(iter(BASE_MODELS))}")
    return alias, name
