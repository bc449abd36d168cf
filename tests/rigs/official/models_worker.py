"""Worker in the environment of an official SDK: its types validate JSON values and dump them.

Each line of stdin is a query; the worker prints one line for each:

    {"names": true}                  the names of all types that the package defines
    {"schema": [MODULE, NAME]}       the JSON Schema that pydantic creates for a type, or null
    {"judge": [MODULE, NAME], "values": [...]}
                                     for each value the error, or two dumps: "wire", as this version of the SDK
                                     sends it, and "full", with every field
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import json
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import pydantic
import tinker
from pydantic import TypeAdapter
from typing_extensions import is_typeddict

COMPONENTS = "#/components/schemas/{model}"
# Arguments of model_dump in the resources of each version.
DUMP_OPTIONS = {"0.16.1": {"exclude_unset": True}, "0.38.0": {"exclude_none": True}}[tinker.__version__]


def list_names() -> list[str]:
    """Return the names of classes that may be types of the wire."""
    class_names = set()
    root = Path(tinker.__path__[0])
    for file in root.rglob("*.py"):
        # Some folders of the package have no __init__.
        part = ".".join([root.name, *file.relative_to(root).with_suffix("").parts]).removesuffix(".__init__")
        if part.endswith(("__main__", "_test")):
            continue
        module = importlib.import_module(part)
        for name, value in vars(module).items():
            # Public classes have the package's name as their module.
            if getattr(value, "__module__", None) in (part, "tinker") and is_shaped(value):
                class_names.add(name)
    return sorted(class_names)


def is_shaped(cls: Any) -> bool:
    """Return whether a value is a class with fields or enum members."""
    kinds = (pydantic.BaseModel, enum.Enum)
    return isinstance(cls, type) and (issubclass(cls, kinds) or dataclasses.is_dataclass(cls) or is_typeddict(cls))


@cache
def create_adapter(module: str, name: str) -> TypeAdapter[Any]:
    """Return the validator of a type; of a union, for the members that have a JSON form."""
    kind = getattr(importlib.import_module(module), name)
    if get_origin(kind) is Union:
        kind = Union[tuple(member for member in get_args(kind) if not dataclasses.is_dataclass(member))]  # noqa: UP007
    return TypeAdapter(kind)


def judge(kind: TypeAdapter[Any], value: Any) -> dict[str, Any]:
    """Return the dumps of one value, or its error."""
    try:
        model = kind.validate_python(value)
    except pydantic.ValidationError as error:
        return {"error": str(error)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wire = kind.dump_python(model, mode="json", by_alias=True, **DUMP_OPTIONS)
        return {"wire": wire, "full": kind.dump_python(model, mode="json", by_alias=True)}


def respond(query: dict[str, Any]) -> Any:
    """Return the response to one query; see the module."""
    if "names" in query:
        return list_names()
    if "schema" in query:
        try:
            return create_adapter(*query["schema"]).json_schema(ref_template=COMPONENTS)
        except pydantic.PydanticUserError:
            return None
    kind = create_adapter(*query["judge"])
    return [judge(kind, value) for value in query["values"]]


if __name__ == "__main__":
    lines, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(respond(json.loads(line))), file=lines, flush=True)
