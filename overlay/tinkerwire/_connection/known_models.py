"""Facts about the server's models that a connection has learnt from the responses to other requests."""

from __future__ import annotations

import attrs


@attrs.define
class KnownModels:
    """The base models of trained models, and the context lengths of base models. Used on the loop thread."""

    base_models: dict[str, str] = attrs.field(factory=dict)
    """The base model by the id of the model that was made from it here."""
    context_lengths: dict[str, int] = attrs.field(factory=dict)
    """The most tokens of prompt and sample together, by base model, as the server's capabilities report it."""
