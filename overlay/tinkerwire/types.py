"""All types of the wire, under their official names."""

from typing import TYPE_CHECKING, Any

from tinkerwire_base.errors import RequestErrorCategory as RequestErrorCategory
from tinkerwire_base.twofold import TopkLogprobs as TopkLogprobs
from tinkerwire_generated.models import *  # noqa: F403

from . import missing

if not TYPE_CHECKING:  # type checkers would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name in missing.MISSING:
            return missing.stand_in(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
