"""Tests of the documentation of public objects, as ``help()``, editors and notebooks read it."""

from __future__ import annotations

import importlib
import inspect
import pydoc
from collections.abc import Callable
from typing import Any

import pytest

import tinkerwire_generated.models
from tinkerwire_base.model import Model

MODULES = (
    "tinkerwire",
    "tinkerwire.types",
    "tinkerwire.auth",
    "tinkerwire.training",
    "tinkerwire.dropin",
    "tinkerwire.experimental",
    "tinkerwire.testing",
    "tinkerwire._server",
    "tinkerwire._checkpoints.weights_info",
)
"""The modules that users import."""
PACKAGES = ("tinkerwire", "tinkerwire_base", "tinkerwire_generated")
READERS: tuple[Callable[[Any], Any], ...] = (
    pydoc.render_doc,
    inspect.getdoc,
    inspect.getfile,
    inspect.getsource,
    inspect.signature,
)


def is_own(value: Any) -> bool:
    """Return whether a class or function is defined in one of the packages here."""
    return (inspect.isclass(value) or inspect.isfunction(value) or inspect.ismethod(value)) and (
        str(getattr(value, "__module__", "")).partition(".")[0] in PACKAGES
    )


def find_failures(place: str, value: Any) -> list[str]:
    """Return the exceptions that functions which read documentation raise for an object."""
    problems = []
    for read in READERS:
        # Python itself gives no signature to subclasses of these without a constructor of their own.
        if read is inspect.signature and inspect.isclass(value) and issubclass(value, BaseException | dict):
            continue
        try:
            read(value)
        except Exception as error:
            problems.append(f"{read.__name__}({place}): {error!r}")
    return problems


def find_unreadable(name: str, visited: set[int]) -> list[str]:
    """Return the failures for a module, its public objects and their public members."""
    module = importlib.import_module(name)
    pydoc.render_doc(module)
    problems: list[str] = []
    for key in (key for key in dir(module) if not key.startswith("_")):
        value = getattr(module, key)
        if not is_own(value) or id(value) in visited:
            continue
        visited.add(id(value))
        problems += find_failures(f"{name}.{key}", value)
        members = inspect.getmembers(value) if inspect.isclass(value) else []
        for member, inner in members:
            if not member.startswith("_") and is_own(inner) and id(inner) not in visited:
                visited.add(id(inner))
                problems += find_failures(f"{name}.{key}.{member}", inner)
    return problems


@pytest.mark.parametrize("name", MODULES)
def test_every_public_object_has_readable_documentation(name: str) -> None:
    """``help()`` and ``inspect`` read every public module, class, function and method."""
    assert not find_unreadable(name, set())


def test_every_model_has_documentation() -> None:
    """Every model of the contract is read, with its fields."""
    models = [
        value
        for value in (getattr(tinkerwire_generated.models, name) for name in tinkerwire_generated.models.__all__)
        if inspect.isclass(value) and issubclass(value, Model)
    ]
    assert len(models) > 150
    for model in models:
        text = pydoc.plain(pydoc.render_doc(model))
        assert model.__name__ in text
        assert all(name in text for name in model.model_fields)


def test_base_class_has_no_fields() -> None:
    """``help()`` reads a base class without fields."""
    assert dict(Model.model_fields) == {}
