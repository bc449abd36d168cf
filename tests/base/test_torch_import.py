"""While torch is being imported on another thread, half of it is there already."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from tinkerwire_base.tensors import wire_array
from tinkerwire_generated.models import ModelInput


def test_values_convert_while_torch_is_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """During the import no value is a tensor yet, and other values convert as usual."""
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    assert ModelInput.from_ints([1, 2]).to_ints() == [1, 2]
    assert wire_array("weights", [1.0], {"weights": "float32"}).tolist() == [1.0]
