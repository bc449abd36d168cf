"""Torch tensors, where torch is installed: widened exactly, detached, shared with numpy where that can be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinkerwire_base.tensors import wire_array
from tinkerwire_generated.constants import LOSS_INPUT_DTYPES
from tinkerwire_generated.models import Datum, ModelInput, TensorData

torch: Any = pytest.importorskip("torch")


def test_bfloat16_is_widened_to_the_bit() -> None:
    """Each of the finite bfloat16 values is the float32 whose upper half it is."""
    halves = np.arange(2**16, dtype=np.uint32)
    expected = (halves << 16).view(np.float32)
    finite = np.isfinite(expected)
    tensor = torch.tensor(halves[finite].astype(np.int32), dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    array = wire_array("weights", tensor)
    assert array.dtype == np.float32
    assert (array.view(np.uint32) == expected[finite].view(np.uint32)).all()


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "float32") for name in ("float16", "float32", "float64", "bfloat16")),
        *((name, "int64") for name in ("int8", "int16", "int32", "int64", "uint8", "bool")),
    ],
)
def test_torch_dtypes_become_wire_dtypes(name: str, dtype: str) -> None:
    """Torch dtypes have the wire dtypes of their numpy namesakes."""
    tensor = TensorData.from_torch(torch.ones((2, 3), dtype=getattr(torch, name)))
    assert (tensor.dtype, tensor.shape, tensor.tolist()) == (dtype, [2, 3], [[1, 1, 1], [1, 1, 1]])


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_wire_dtypes_share_memory(dtype: str) -> None:
    """float32 and int64 on the CPU are not copied, in and out."""
    tensor = torch.zeros((2, 3), dtype=getattr(torch, dtype))
    converted = TensorData.from_torch(tensor)
    tensor[0, 0] = 7
    assert converted.tolist()[0][0] == 7
    assert converted.to_torch().data_ptr() == tensor.data_ptr()
    assert converted.to_torch().shape == (2, 3)


def test_tensors_with_gradients_views_and_sparse_tensors_convert() -> None:
    """Tensors that need gradients, transposed views, scalars and sparse tensors are taken."""
    assert TensorData.from_torch(torch.ones(2, requires_grad=True)).tolist() == [1, 1]
    view = torch.arange(6).reshape(2, 3).T
    assert TensorData.from_torch(view).tolist() == view.tolist()
    assert TensorData.from_torch(torch.tensor(3.0)).shape == []
    assert TensorData.from_torch(torch.eye(2).to_sparse()).tolist() == [[1, 0], [0, 1]]


def test_read_only_memory_is_copied_on_the_way_out() -> None:
    """Torch has no read-only tensors, so that what must not change is copied."""
    array = np.frombuffer(b"\0" * 8, dtype=np.float32)
    copied = TensorData.from_numpy(array).to_torch()
    copied[0] = 1
    assert array[0] == 0


def test_tensors_are_accepted_as_tokens_and_loss_inputs() -> None:
    """Datums take tensors for tokens and for every loss input."""
    datum = Datum(
        model_input=ModelInput.from_ints(torch.tensor([1, 2])),
        loss_fn_inputs={
            "target_tokens": torch.tensor([2, 3]),
            "weights": torch.tensor([1.0, 0.5], dtype=torch.bfloat16),
        },
    )
    assert datum.model_input.to_ints() == [1, 2]
    assert {key: tensor.dtype for key, tensor in datum.loss_fn_inputs.items()} == {
        "target_tokens": "int64",
        "weights": "float32",
    }


@pytest.mark.parametrize(
    ("tensor", "pattern"),
    [
        (lambda: torch.ones(2, dtype=torch.complex64), "weights: dtype complex64 has no wire form"),
        (lambda: torch.ones(2, dtype=torch.float8_e4m3fn), "weights: torch.float8_e4m3fn on cpu cannot be read"),
        (lambda: torch.ones(2, device="meta"), "weights: torch.float32 on meta cannot be read"),
    ],
)
def test_torch_dtypes_without_a_wire_form_are_rejected(tensor: Any, pattern: str) -> None:
    """Complex, 8-bit floats and tensors without memory raise an error that names key, dtype and device."""
    with pytest.raises(TypeError, match=pattern):
        wire_array("weights", tensor())


def test_bfloat16_of_numpy_is_widened_to_the_bit() -> None:
    """The bfloat16 that ml_dtypes adds to numpy is widened like that of torch."""
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    halves = np.array([0x3F80, 0xC000, 0x0001, 0x7F7F], dtype=np.uint16)
    array = wire_array("weights", halves.view(bfloat16))
    assert (array.view(np.uint32) == halves.astype(np.uint32) << 16).all()


def test_lists_of_tensors_convert() -> None:
    """A list of tensors is refused or read, but never misread."""
    try:
        array = wire_array("weights", [torch.tensor(1.0), torch.tensor(2.0)], LOSS_INPUT_DTYPES)
    except TypeError as error:
        assert "weights[0]: expected a number" in str(error)
    else:
        assert array.tolist() == [1, 2]


def test_non_finite_values_are_kept() -> None:
    """Infinity stays as it is, in bfloat16 too."""
    array = wire_array("weights", torch.tensor([1.0, float("-inf")], dtype=torch.bfloat16))
    assert array.tolist() == [1.0, float("-inf")]


@pytest.mark.parametrize("key", ["weights", "target_tokens"])
def test_sparse_bfloat16_tables_convert(key: str) -> None:
    """Two dimensions, nearly all zero, in bfloat16: of the values that they show."""
    table = torch.zeros(8, 16, dtype=torch.bfloat16)
    table[3, 5] = 2.0
    inputs = {"target_tokens": torch.zeros(8, 16, dtype=torch.int64), "weights": torch.ones(8, 16)}
    if key == "target_tokens":
        table = table.to(torch.int64)
    datum = Datum(model_input=ModelInput.from_ints(list(range(8))), loss_fn_inputs={**inputs, key: table})
    array = datum.loss_fn_inputs[key].to_numpy()
    assert array.shape == (8, 16)
    assert (array == table.to(torch.float32).numpy()).all()
