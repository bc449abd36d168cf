"""Conversion of torch tensors, with a fake in place of torch."""

from __future__ import annotations

import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tinkerwire_base import tensors
from tinkerwire_base.tensors import (
    token_ids,
)
from tinkerwire_generated.constants import LOSS_INPUT_DTYPES

wire_array = partial(tensors.wire_array, list_dtypes=LOSS_INPUT_DTYPES)


class FakeTensor:
    """Tensor with the methods of torch that the conversion uses; it records the ones that were called."""

    def __init__(self, array: Any, dtype: str = "any", layout: str = "strided") -> None:
        self.array, self.dtype, self.layout, self.device = array, dtype, layout, "cpu"
        self.calls: list[object] = []

    def detach(self) -> FakeTensor:
        """Return the tensor without gradients."""
        self.calls.append("detach")
        return self

    def to_dense(self) -> FakeTensor:
        """Return the dense form."""
        self.calls.append("to_dense")
        return self

    def to(self, dtype: object) -> FakeTensor:
        """Return the tensor in another dtype."""
        self.calls.append(dtype)
        return self

    def cpu(self) -> FakeTensor:
        """Return the tensor in main memory."""
        self.calls.append("cpu")
        return self

    def numpy(self) -> Any:
        """Return the array, or raise the error in its place."""
        if isinstance(self.array, Exception):
            raise self.array
        return self.array


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load a torch whose only tensors are fake."""
    modules: Any = sys.modules
    module = SimpleNamespace(Tensor=FakeTensor, strided="strided", bfloat16="bfloat16", float32="float32")
    monkeypatch.setitem(modules, "torch", module)


@pytest.mark.usefixtures("fake_torch")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int64])
def test_transposed_tensor_becomes_contiguous(dtype: Any) -> None:
    """Torch returns a view in column order, whose rows are contiguous on the wire."""
    converted = wire_array("weights", FakeTensor(np.array([[1, 2, 3], [4, 5, 6]], dtype).T))
    assert converted.flags.c_contiguous
    assert converted.tolist() == [[1, 4], [2, 5], [3, 6]]


@pytest.mark.usefixtures("fake_torch")
def test_tensor_is_detached_dense_and_readable_by_numpy() -> None:
    """Sparse tensors become dense, and bfloat16, which numpy lacks, float32; an unreadable tensor is named."""
    array = np.array([1.0], np.float32)
    for tensor, calls in (
        (FakeTensor(array), ["detach", "cpu"]),
        (FakeTensor(array, layout="sparse"), ["detach", "to_dense", "cpu"]),
        (FakeTensor(array, "bfloat16"), ["detach", "float32", "cpu"]),
    ):
        assert wire_array("weights", tensor).tolist() == [1.0]
        assert tensor.calls == calls
    for error in (TypeError("quantized"), NotImplementedError("meta"), RuntimeError("conjugated")):
        with pytest.raises(TypeError, match=rf"^weights: qint8 on cpu cannot be read \({error}\); cast it"):
            wire_array("weights", FakeTensor(error, "qint8"))


@pytest.mark.usefixtures("fake_torch")
def test_tokens_of_a_tensor_are_checked_like_arrays() -> None:
    """The error has the name of the tokens."""
    assert token_ids("x", FakeTensor(np.array([1, 2]))).tolist() == [1, 2]
    with pytest.raises(TypeError, match=r"^x: expected a 1-D array of integers, got 1-D float32"):
        token_ids("x", FakeTensor(np.array([1.0], np.float32)))
    with pytest.raises(TypeError, match=r"^x: meta on cpu cannot be read"):
        token_ids("x", FakeTensor(RuntimeError("no"), "meta"))


def test_torch_is_found_loaded_or_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded torch counts as installed; otherwise the import system decides."""
    modules: Any = sys.modules
    monkeypatch.setitem(modules, "torch", SimpleNamespace())
    monkeypatch.setattr(tensors, "find_spec", lambda name: None)
    assert tensors.is_torch_installed()
    monkeypatch.delitem(sys.modules, "torch")
    assert not tensors.is_torch_installed()
    monkeypatch.setattr(tensors, "find_spec", lambda name: name if name == "torch" else None)
    assert tensors.is_torch_installed()
