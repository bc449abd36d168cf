"""Methods of the models that have any, as mixins that the contract names by ``x-mixin``.

``_converts`` names the fields that a mixin takes in more forms than their type says, and makes the one form of.
"""

from __future__ import annotations

import math
import sys
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from typing_extensions import Self

from .. import console_urls
from ..errors import RequestErrorCategory
from ..lazy_numpy import Array, np
from ..short_repr import short_repr
from ..tensors import text_length, token_ids, wire_array, wire_dtype, wire_list
from ..validators import NumberRangeError, require_number, require_str
from .dmel import container_length
from .sample_compat import SampledSequenceMixin as SampledSequenceMixin
from .sample_compat import SampleResponseMixin as SampleResponseMixin
from .tensor_data import TensorDataMixin as TensorDataMixin

FLOAT32_MAX = (2 - 2**-23) * 2.0**127
TINKER_SCHEME = "tinker://"
CHECKPOINT_KINDS: Mapping[str, str] = {
    "weights": "training",
    "sampler_weights": "sampler",
    "external_weights": "external",
}
"""The middle part of a tinker path, and the checkpoint type it stands for."""


def _set(model: Any, name: str, value: Any) -> None:
    object.__setattr__(model, name, value)


def _own(values: Any) -> Any:
    """A list of the model's own: code fills one list again and again. Arrays are kept as they are."""
    return list(values) if isinstance(values, list | tuple) else values


def _bytes(place: str, what: str, value: Any) -> bytes:
    if isinstance(value, str):
        try:
            return b64decode(value, validate=True)
        except ValueError as error:
            raise ValueError(f"{place}: text that is not base64 ({error})") from None
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"{place}: expected the bytes of {what}, or those in base64, got {type(value).__name__}")
    return bytes(value)


class EncodedTextChunkMixin:
    """A run of tokens; ``tokens`` is taken as a list, array or torch tensor of integers."""

    __slots__ = ("_text_length",)
    _converts = ("tokens",)
    if TYPE_CHECKING:
        tokens: Any

    def __attrs_post_init__(self) -> None:
        given = self.tokens
        # The check of a list makes its text, whose length is needed again when a batch is split.
        length = text_length(given) if isinstance(given, list) else None
        found = given if length is not None else token_ids(f"{type(self).__name__}.tokens", given)
        _set(self, "tokens", _own(found) if found is given else found)
        _set(self, "_text_length", (len(found), length))

    @property
    def text_length(self) -> int | None:
        """The length of the tokens as JSON, if it is known: not for arrays, nor after a change of their number."""
        count, length = getattr(self, "_text_length", (-1, None))
        return length if count == len(self.tokens) else None

    @property
    def length(self) -> int:
        """How many tokens of context it takes."""
        return len(self.tokens)


class ImageAssetMixin:
    """A chunk whose length is what the caller expects the server to count."""

    __slots__ = ()
    if TYPE_CHECKING:
        expected_tokens: int | None
        tokens: int | None

    @property
    def length(self) -> int:
        """How many tokens of context it takes. Raises ValueError when nobody has said."""
        known = self.expected_tokens if self.expected_tokens is not None else self.tokens
        if known is None:
            raise ValueError(f"{type(self).__name__}: its length in tokens is unknown; give expected_tokens")
        return known


class ImageBytesMixin(ImageAssetMixin):
    """An image inline; ``data`` is taken as bytes or as base64 text."""

    __slots__ = ()
    _converts = ("data",)
    if TYPE_CHECKING:
        data: Any

    def __attrs_post_init__(self) -> None:
        _set(self, "data", _bytes(f"{type(self).__name__}.data", "an image file", self.data))


class DmelChunkMixin:
    """A chunk that holds a tensor in a container; ``dmel`` is taken as bytes or as base64 text."""

    __slots__ = ()
    _converts = ("dmel",)
    if TYPE_CHECKING:
        dmel: Any

    def __attrs_post_init__(self) -> None:
        _set(self, "dmel", _bytes(f"{type(self).__name__}.dmel", "a tensor container", self.dmel))

    @property
    def length(self) -> int:
        """How many tokens of context it takes. Raises ValueError for bytes that are no container."""
        return container_length(self.dmel)


class ModelInputMixin:
    """A prompt or training input: chunks of text tokens and images."""

    __slots__ = ()
    if TYPE_CHECKING:
        chunks: Any

    @classmethod
    def _chunk_of(cls, tokens: Any) -> Any:
        module = sys.modules[cls.__module__]
        return module.EncodedTextChunk(tokens=tokens)

    def __attrs_post_init__(self) -> None:
        _set(self, "chunks", _own(self.chunks))

    @classmethod
    def from_ints(cls, tokens: Sequence[int] | Array) -> Self:
        """One text chunk of these token ids."""
        return cls(chunks=[cls._chunk_of(tokens)])  # type: ignore[call-arg]

    @classmethod
    def empty(cls) -> Self:
        """No chunks."""
        return cls(chunks=[])  # type: ignore[call-arg]

    def append(self, chunk: Any) -> Self:
        """A new input with ``chunk`` at its end."""
        return type(self)(chunks=[*self.chunks, chunk])  # type: ignore[call-arg]

    def append_int(self, token: int) -> Self:
        """A new input with one token more."""
        return self.append(self._chunk_of([token]))

    @property
    def length(self) -> int:
        """How many tokens of context it takes."""
        return sum(chunk.length for chunk in self.chunks)

    def to_ints(self) -> list[int]:
        """All token ids. Raises ValueError when a chunk is not text."""
        found: list[int] = []
        for position, chunk in enumerate(self.chunks):
            if not isinstance(chunk, EncodedTextChunkMixin):
                raise ValueError(f"chunks[{position}]: {type(chunk).__name__} has no token ids; only text chunks have")
            found.extend(map(int, chunk.tokens))
        return found


class DatumMixin:
    """One training example; ``loss_fn_inputs`` takes arrays, torch tensors and lists beside TensorData."""

    __slots__ = ()
    _converts = ("loss_fn_inputs",)
    if TYPE_CHECKING:
        model_input: Any
        loss_fn_inputs: Any
        model_input_spans: Any
        loss_fn_input_spans: Any

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.loss_fn_inputs, Mapping):
            raise TypeError(
                f"{type(self).__name__}.loss_fn_inputs: expected a dict of name to tensor, "
                f"got {type(self.loss_fn_inputs).__name__}"
            )
        tensor_type = sys.modules[type(self).__module__].TensorData
        _set(self, "loss_fn_inputs", {k: _tensor(tensor_type, k, v) for k, v in self.loss_fn_inputs.items()})
        if (self.model_input_spans is None) != (self.loss_fn_input_spans is None):
            raise ValueError(
                f"{type(self).__name__}: give both model_input_spans and loss_fn_input_spans, or none of them"
            )

    def with_provenance(self, model_input: Sequence[Any], loss_fn_inputs: Sequence[Any]) -> Self:
        """The same example, with word of where its tokens come from.

        Args:
            model_input: spans that cover the tokens of ``model_input``, in order.
            loss_fn_inputs: spans that cover the tokens of ``target_tokens``, in order.

        Raises:
            TypeError: something that is no span.
            ValueError: spans that cover more or fewer tokens than there are.
        """
        spans = {"model_input_spans": list(model_input), "loss_fn_input_spans": list(loss_fn_inputs)}
        found: Self = attrs.evolve(self, **spans)  # type: ignore[misc]
        _check_cover("model_input", model_input, self.model_input.length)
        targets = self.loss_fn_inputs.get("target_tokens")
        # Where targets have more than one dimension, the server says what a run is.
        if targets is not None and len(targets.shape or [0]) == 1:
            _check_cover("loss_fn_inputs", loss_fn_inputs, len(targets.raw))
        return found


def _check_cover(name: str, spans: Sequence[Any], length: int) -> None:
    covered = sum(span.length for span in spans)
    if covered != length:
        raise ValueError(f"{name}: the spans cover {covered} tokens of {length}; cover each once")


def _tensor(tensor_type: Any, name: str, value: Any) -> Any:
    require_str("loss_fn_inputs key", name)
    if not isinstance(value, TensorDataMixin):
        return tensor_type.from_array(name, value)
    raw = value.raw
    plain = _plain_array(name, value) if isinstance(raw, np.ndarray) else _plain_list(name, value)
    return value if plain is raw else attrs.evolve(value, data=plain)  # type: ignore[misc]


def _plain_array(name: str, value: TensorDataMixin) -> Array:
    found = wire_array(name, value.raw)
    return found if wire_dtype(found) == value.dtype else found.astype(value.dtype)


def _plain_list(name: str, value: TensorDataMixin) -> Any:
    """The list of a tensor, or one of the same numbers as Python has them. Errors: see :func:`wire_array`."""
    raw = value.raw
    if value.dtype == "int64":
        return token_ids(name, raw)
    if not set(map(type, raw)) <= {int, float}:
        for position, item in enumerate(raw):
            _is_float(f"{name}[{position}]", item)
        raw = [float(item) if isinstance(item, float | np.floating) else int(item) for item in raw]
    # Infinity is larger than all together, and NaN is not less than anything.
    if not sum(map(abs, raw)) < FLOAT32_MAX:
        try:
            wire_list(name, raw, "float32")
        except OverflowError as error:
            text = str(error)
            raise NumberRangeError(text if text.startswith(name) else f"{name}: {text}") from None
    return raw


def _is_float(place: str, value: Any) -> None:
    """Raise TypeError unless a value is a number; it may be NaN or infinite."""
    is_non_finite = isinstance(value, float | np.floating) and not math.isfinite(value)
    if not is_non_finite:
        require_number(place, value)


class LossConfigMixin:
    """A batch and its loss; numbers of ``loss_fn_config`` may be infinite, as protobuf carries those."""

    __slots__ = ()
    _converts = ("loss_fn_config",)
    if TYPE_CHECKING:
        loss_fn_config: Any

    def __attrs_post_init__(self) -> None:
        config, name = self.loss_fn_config, f"{type(self).__name__}.loss_fn_config"
        if config is None:
            return
        if not isinstance(config, Mapping):
            raise TypeError(f"{name}: expected a dict of name to number or text, got {type(config).__name__}")
        for key, value in config.items():
            require_str(f"{name} key", key)
            if not isinstance(value, str):
                _is_float(f"{name}[{key!r}]", value)


def _parts(tinker_path: str) -> list[str]:
    """Run, kind and name of a path; ValueError when it is none."""
    is_path = isinstance(tinker_path, str) and tinker_path.startswith(TINKER_SCHEME)
    parts = tinker_path[len(TINKER_SCHEME) :].split("/") if is_path else []
    if len(parts) != 3 or not all(parts) or parts[1] not in CHECKPOINT_KINDS:
        kinds = " or ".join(f"{TINKER_SCHEME}RUN/{kind}/NAME" for kind in CHECKPOINT_KINDS)
        shown = repr(tinker_path) if isinstance(tinker_path, str) else short_repr(tinker_path)
        raise ValueError(f"{shown} is not a checkpoint path; it should read {kinds}")
    return parts


class CheckpointPathMixin:
    """The parts of ``tinker://RUN/weights/NAME``, and the same with sampler_weights or external_weights."""

    __slots__ = ()

    @classmethod
    def from_tinker_path(cls, tinker_path: str) -> Self:
        """Read a path. Raises ValueError naming the path and the form it should have."""
        parts = _parts(tinker_path)
        model: Any = cls
        found: Self = model(
            tinker_path=tinker_path,
            training_run_id=parts[0],
            checkpoint_type=CHECKPOINT_KINDS[parts[1]],
            checkpoint_id=f"{parts[1]}/{parts[2]}",
        )
        return found


class SaveWeightsMixin:
    """Weights that were saved, and their page."""

    __slots__ = ()
    if TYPE_CHECKING:
        path: str

    def get_console_url(self) -> str:
        """The page of the checkpoint in the Tinker service's console. ValueError when ``path`` is none of one."""
        run, *checkpoint = _parts(self.path)
        return console_urls.checkpoint_page(run, "/".join(checkpoint))


class SaveSamplerWeightsMixin(SaveWeightsMixin):
    """Weights that were saved to sample from."""

    __slots__ = ()

    def get_playground_url(self) -> str:
        """The page of the Tinker service's console where one talks to them."""
        return console_urls.playground_page(self.path)


class ErrorCategoryMixin:
    """Whose fault a failed request is, in whatever letter case the server writes it; others stay as they came."""

    __slots__ = ()
    if TYPE_CHECKING:
        category: Any

    def __attrs_post_init__(self) -> None:
        lower = str(self.category).lower()
        if lower in (category.value for category in RequestErrorCategory):
            _set(self, "category", lower)
