"""The catalogue of base models and their aliases."""

from __future__ import annotations

from collections.abc import Mapping

from tinkerwire._server.engine import BASE_MODELS, ModelConfig
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.options import require_type, split_assignment
from tinkerwire_base.validators import require_str


class Catalogue:
    """The engine's base models, under their own names and under aliases.

    Args:
        aliases: further names, each with the name of a model of the engine.

    Raises:
        TypeError: the aliases are not a mapping of texts.
        ValueError: the model of an alias is unknown, or the alias is empty, has blanks or is the name of a model.
    """

    def __init__(self, aliases: Mapping[str, str]) -> None:
        require_type("aliases", aliases, Mapping, "a mapping of names to models")
        for alias, name in aliases.items():
            require_str("alias", alias)
            require_str(f"alias {alias!r}", name)
            if name not in BASE_MODELS:
                raise ValueError(f"alias {alias!r}: unknown model {name!r}; choose one of {', '.join(BASE_MODELS)}")
            if not alias or alias in BASE_MODELS or " " in alias or not alias.isprintable():
                raise ValueError(
                    f"alias {alias!r} of {name!r}: must not be empty, have blanks or be the name of a model; "
                    "an example is org/model"
                )
        self.models: Mapping[str, ModelConfig] = {
            **BASE_MODELS,
            **{alias: BASE_MODELS[name] for alias, name in aliases.items()},
        }
        """The config of the engine's model by name."""

    def get(self, name: str) -> ModelConfig:
        """Return the config of a model.

        Raises:
            HttpError: 404 for an unknown name.
        """
        config = self.models.get(name)
        if config is None:
            raise HttpError(404, f"unknown base model {name[:200]!r}; choose one of {', '.join(self.models)}")
        return config


def parse_alias(text: str) -> tuple[str, str]:
    """Return the alias and the model of ``NAME=MODEL``.

    Raises:
        ValueError: the text does not have this form.
    """
    return split_assignment("alias", text, f"org/model={next(iter(BASE_MODELS))}")
