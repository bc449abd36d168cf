"""Facts about the server's models that a connection knows from responses."""

from __future__ import annotations

import attrs


@attrs.define
class KnownModels:
    """The base models of trained models, and the context lengths of base models. Used on the loop thread."""

    base_models: dict[str, str] = attrs.field(factory=dict)
    """Base models by the id of the models that this connection created from them."""
    context_lengths: dict[str, int] = attrs.field(factory=dict)
    """Maximum tokens of prompt and sample together by base model, from the server's capabilities."""
