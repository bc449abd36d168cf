# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from attrs import field
from tinkerwire_base.compat.dataclass_methods import DataclassMethods
from tinkerwire_base.mixins import (
    DatumMixin,
    DmelChunkMixin,
    EncodedTextChunkMixin,
    ImageAssetMixin,
    ImageBytesMixin,
    ModelInputMixin,
    TensorDataMixin,
)
from tinkerwire_base.model import Array, ForbidExtra, define
from tinkerwire_base.validators import (
    at_least,
    field_validator,
    has_size,
)

from tinkerwire_generated.constants import (
    LOSS_INPUT_DTYPES,
)


@define(kw_only=False)
class Datum(DatumMixin, DataclassMethods, ForbidExtra):
    """One training example: an input and the tensors of its loss.

    Wire: 0.1.0 and later.

    Example:
        >>> datum = tinker.Datum(
        ...     model_input=tinker.ModelInput.from_ints([72, 101, 108]),
        ...     loss_fn_inputs={"target_tokens": [101, 108, 108], "weights": [0.0, 1.0, 1.0]},
        ... )
        >>> datum.loss_fn_inputs["weights"].dtype
        'float32'
    """

    model_input: ModelInput = field(validator=field_validator())
    """Input of the model."""
    loss_fn_inputs: LossFnInputs
    """Tensors of the loss."""
    model_input_spans: ProvenanceSpans | None = field(
        default=None, validator=field_validator(), metadata={"protobuf_only": True}
    )
    """Origin of the tokens of the input; the runs are in order and cover all tokens. (wire 0.26.2 and later)"""
    loss_fn_input_spans: ProvenanceSpans | None = field(
        default=None, validator=field_validator(), metadata={"protobuf_only": True}
    )
    """Origin of the tokens of target_tokens; the runs are in order and cover all tokens. (wire 0.26.2 and later)"""


@define
class DmelChunk(DmelChunkMixin, ForbidExtra):
    """A piece of input as a serialized tensor.

    Wire: 0.23.4 and later.
    """

    _is_tag_optional = True

    dmel: bytes
    """Serialized tensor, in base64; its first dimension is the number of tokens."""
    type: Literal["dmel"] = field(default="dmel", validator=field_validator())
    """Tag of the chunk."""


@define
class EncodedTextChunk(EncodedTextChunkMixin, ForbidExtra):
    """A run of text as token ids.

    Wire: 0.1.0 and later.
    """

    _is_tag_optional = True

    _tokens: Sequence[int] | Array = field(alias="tokens")
    """Token ids in order."""
    type: Literal["encoded_text"] = field(default="encoded_text", validator=field_validator())
    """Tag of the chunk."""


@define
class ImageAssetPointerChunk(ImageAssetMixin, ForbidExtra):
    """An image that the server fetches from a URL.

    Wire: 0.1.0 and later.
    """

    _is_tag_optional = True

    location: str = field(validator=field_validator())
    """Location of the image."""
    format: ImageFormat = field(validator=field_validator())
    """Encoding of the stored image."""
    height: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Height in pixels. (wire 0.1.0 to before 0.6.0)"""
    width: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Width in pixels. (wire 0.1.0 to before 0.6.0)"""
    tokens: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Number of tokens of the image in the input. (wire 0.1.0 to before 0.6.0)"""
    expected_tokens: int | None = field(default=None, validator=field_validator())
    """Expected number of tokens of the image; null for the server's choice. (wire 0.6.0 and later)"""
    type: Literal["image_asset_pointer"] = field(default="image_asset_pointer", validator=field_validator())
    """Tag of the chunk."""


@define
class ImageChunk(ImageBytesMixin, ForbidExtra):
    """An image, sent in the request.

    Wire: 0.3.0 and later.
    """

    _is_tag_optional = True

    data: bytes
    """Bytes of the image file, in base64."""
    format: ImageFormat = field(validator=field_validator())
    """Encoding of the bytes."""
    height: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Height in pixels. (wire 0.3.0 to before 0.6.0)"""
    width: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Width in pixels. (wire 0.3.0 to before 0.6.0)"""
    tokens: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Number of tokens of the image in the input. (wire 0.3.0 to before 0.6.0)"""
    expected_tokens: int | None = field(default=None, validator=field_validator())
    """Expected number of tokens of the image; null for the server's choice. (wire 0.6.0 and later)"""
    type: Literal["image"] = field(default="image", validator=field_validator())
    """Tag of the chunk."""


ImageFormat: TypeAlias = Literal["png", "jpeg"]
"""
Encoding of an image.

Wire: 0.1.0 and later.
"""


@define
class ModelInput(ModelInputMixin, ForbidExtra):
    """The input of a model, a sequence of chunks.

    Wire: 0.1.0 and later.

    Example:
        >>> prompt = tinker.ModelInput.from_ints([72, 105])
        >>> prompt.length
        2
        >>> prompt.append(tinker.EncodedTextChunk(tokens=[33])).to_ints()
        [72, 105, 33]
    """

    chunks: list[ModelInputChunk] = field(validator=field_validator())
    """The chunks in order."""


ModelInputChunk: TypeAlias = EncodedTextChunk | ImageAssetPointerChunk | ImageChunk | DmelChunk
"""
A piece of a model's input.

Wire: 0.1.0 and later.
"""


@define
class PromptProvenanceSpan(DataclassMethods, ForbidExtra):
    """A run of tokens that come from the prompt of a sample.

    Wire: 0.26.2 and later.
    """

    sequence_id: str = field(validator=field_validator(has_size(1)))
    """The sample, one of sample_sequence_ids."""
    length: int = field(validator=field_validator(at_least(0)))
    """Number of tokens of the run."""
    offset: int = field(default=0, validator=field_validator(at_least(0)))
    """Number of tokens of the prompt before the run."""


@define
class SampledProvenanceSpan(DataclassMethods, ForbidExtra):
    """A run of tokens that come from a sample.

    Wire: 0.26.2 and later.
    """

    sequence_id: str = field(validator=field_validator(has_size(1)))
    """The sample, one of sample_sequence_ids."""
    length: int = field(validator=field_validator(at_least(0)))
    """Number of tokens of the run."""
    offset: int = field(default=0, validator=field_validator(at_least(0)))
    """Number of tokens of the sample before the run."""


ProvenanceSpan: TypeAlias = PromptProvenanceSpan | SampledProvenanceSpan
"""
Origin of a run of tokens.

Wire: 0.26.2 and later.
"""


ProvenanceSpans: TypeAlias = list[ProvenanceSpan]
"""
Origin of tokens, run by run.

Wire: 0.26.2 and later.
"""


@define(kw_only=False)
class TensorData(TensorDataMixin, DataclassMethods, ForbidExtra):
    """A tensor, its values row by row in one flat list.

    Wire: 0.1.0 and later.

    Example:
        >>> tensor = tinker.TensorData(data=[1.0, 2.0, 3.0, 4.0], dtype="float32", shape=[2, 2])
        >>> tensor.to_numpy().tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """

    _loss_input_dtypes = LOSS_INPUT_DTYPES

    _data: Sequence[float] | Array = field(alias="data")
    """Flat values in row-major order; whole numbers when dtype is int64."""
    dtype: TensorDtype = field(validator=field_validator())
    """Kind of the numbers."""
    shape: list[int] | None = field(default=None, validator=field_validator())
    """Length of each dimension; null means one dimension as long as data."""
    sparse_crow_indices: Sequence[int] | Array | None = field(default=None, validator=field_validator())
    """For a sparse matrix (CSR), the start of each row in data; rows + 1 numbers. (wire 0.18.2 and later)"""
    sparse_col_indices: Sequence[int] | Array | None = field(default=None, validator=field_validator())
    """For a sparse matrix (CSR), the column of each value of data. (wire 0.18.2 and later)"""


LossFnInputs: TypeAlias = dict[str, TensorData]
"""
Tensors of a loss by name, mostly one number per input token; target_tokens is int64, all others are float32.

Wire: 0.1.0 and later.
"""


TensorDtype: TypeAlias = Literal["int64", "float32"]
"""
Kind of the numbers in a tensor.

Wire: 0.1.0 and later.
"""
