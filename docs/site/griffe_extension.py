"""Extensions of griffe, which reads the code for the reference."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|meth|func|attr|mod):(?=`)")
EXAMPLE = re.compile(r"^(\s*)Example:$", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Removes the roles of Sphinx, which docstrings have for editors, and marks examples as griffe expects."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(r"\1Examples:", ROLE.sub("", obj.docstring.value))


class AttrsFields(griffe.Extension):
    """Replaces ``field(default=X, ...)`` by ``X``, and omits fields without a default."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Change the value of one attribute."""
        value = attr.value
        if not isinstance(value, griffe.ExprCall) or str(value.canonical_name).rpartition(".")[2] != "field":
            return
        arguments = {item.name: item.value for item in value.arguments if isinstance(item, griffe.ExprKeyword)}
        attr.value = arguments.get("default")
