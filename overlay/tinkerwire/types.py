"""All types of the wire, under their official names."""

from typing import TYPE_CHECKING, Any

from tinkerwire_base.errors import RequestErrorCategory as RequestErrorCategory
from tinkerwire_base.list_array import TopkLogprobs as TopkLogprobs
from tinkerwire_generated import models

if TYPE_CHECKING:
    from tinkerwire_generated.models import *  # noqa: F403

    # Again, because the models define the same name as a Literal of its values.
    from tinkerwire_base.errors import RequestErrorCategory as RequestErrorCategory  # isort: skip
else:
    __all__ = [*models.__all__, "TopkLogprobs"]  # noqa: PLE0604  (they are strings)

    def __getattr__(name: str) -> Any:
        """Return a type of the wire, and import its family."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(models, name)
        return value

    def __dir__() -> list[str]:
        """Return the names of the module, also those that are not imported yet."""
        return sorted({*globals(), *__all__})
