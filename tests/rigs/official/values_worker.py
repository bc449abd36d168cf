"""Worker in the environment of the official SDK 0.38.0: reads {type: [value]}, writes {type: [dumps]}."""

from __future__ import annotations

import json
import sys
from typing import Any

from pydantic import BaseModel, ValidationError
from tinker import types


def dump(kind: type[BaseModel], value: Any) -> dict[str, Any] | None:
    """Return the dumps of one value by name; None if the type rejects the value."""
    try:
        model = kind.model_validate(value)
    except ValidationError:
        return None
    return {
        "json": model.model_dump(mode="json"),
        "text": json.loads(model.model_dump_json()),
        "no nulls": model.model_dump(mode="json", exclude_none=True),
        "no defaults": model.model_dump(mode="json", exclude_defaults=True),
    }


values = json.load(sys.stdin)
kinds = {name: getattr(types, name, None) for name in values}
dumps_by_type = {
    name: [dump(kind, value) for value in values[name]]
    for name, kind in kinds.items()
    if isinstance(kind, type) and issubclass(kind, BaseModel)
}
json.dump(dumps_by_type, sys.stdout)
