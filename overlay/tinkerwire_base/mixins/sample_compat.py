"""Mixins of sample results: lists and arrays, and the constructor arguments of the official classes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..lazy_numpy import Array
from ..list_array import ArrayCodec, DualValue, TopKCodec, TopkLogprobs, read_array, read_list

TOKENS, LOGPROBS = ArrayCodec("int32"), ArrayCodec("float32")
PROMPT_LOGPROBS = ArrayCodec("float32", gaps=True)
TOPK = TopKCodec()


class OfficialConstructor:
    """A constructor that takes the arguments of the official class, too."""

    __slots__ = ()
    _positions: tuple[str, ...] = ()
    """The official arguments in their order."""
    _dual_fields: tuple[str, ...] = ()
    """Fields with a list NAME and an array NAME_np; the official arguments are _NAME_list and NAME_np."""

    def __init_subclass__(cls) -> None:
        """Let the constructor of a generated class accept official arguments."""
        super().__init_subclass__()
        # attrs makes each class twice; only the second class has a constructor.
        if "__attrs_attrs__" in cls.__dict__:
            setattr(cls, "__init__", _accept_official_arguments(cls, cls.__dict__["__init__"]))  # noqa: B010  (mypy)

    @classmethod
    def _map_official_state(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the constructor arguments in the state of an official result."""
        return cls._map_official_arguments((), values)

    @classmethod
    def _map_official_arguments(cls, args: tuple[Any, ...], values: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the generated constructor for those of the official constructor."""
        if len(args) > len(cls._positions):
            raise TypeError(f"{cls.__name__} takes at most {len(cls._positions)} positional arguments, got {len(args)}")
        for name, value in zip(cls._positions, args, strict=False):
            if name in values:
                raise TypeError(f"{cls.__name__}: got two values for {name}; pass one")
            values[name] = value
        for name in cls._dual_fields:
            dual = DualValue(values.pop(f"_{name}_list", None), values.pop(f"{name}_np", None))
            if dual.values is not None or dual.array is not None:
                values[name] = dual
        return values


def _accept_official_arguments(cls: Any, constructor: Callable[..., None]) -> Callable[..., None]:
    fields = frozenset(attribute.alias for attribute in cls.__attrs_attrs__)

    @functools.wraps(constructor)
    def init(self: Any, *args: Any, **values: Any) -> None:
        if not args:
            try:
                constructor(self, **values)
                return
            except TypeError:
                if fields.issuperset(values):
                    raise
        constructor(self, **cls._map_official_arguments(args, values))

    return init


class SampledSequenceMixin(OfficialConstructor):
    """One sample."""

    __slots__ = ()
    _positions = (
        "stop_reason",
        "sequence_id",
        "tokens_np",
        "logprobs_np",
        "topk_logprobs_np",
        "_tokens_list",
        "_logprobs_list",
        "_topk_logprobs_list",
    )
    _dual_fields = ("tokens", "logprobs", "topk_logprobs")

    @property
    def tokens(self) -> list[int]:
        """The sampled token ids."""
        tokens: list[int] = read_list(self, "_tokens", TOKENS)
        return tokens

    @property
    def tokens_np(self) -> Array:
        """The sampled token ids, int32."""
        array: Array = read_array(self, "_tokens", TOKENS)
        return array

    @property
    def logprobs(self) -> list[float] | None:
        """The logprob (nats) of each sampled token."""
        logprobs: list[float] | None = read_list(self, "_logprobs", LOGPROBS)
        return logprobs

    @property
    def logprobs_np(self) -> Array | None:
        """The logprob (nats) of each sampled token, float32."""
        array: Array | None = read_array(self, "_logprobs", LOGPROBS)
        return array

    @property
    def topk_logprobs(self) -> list[list[tuple[int, float]] | None] | None:
        """The likeliest tokens at each position of the sample, best first; None for a position without."""
        pairs: list[list[tuple[int, float]] | None] | None = read_list(self, "_topk_logprobs", TOPK)
        return pairs

    @property
    def topk_logprobs_np(self) -> TopkLogprobs | None:
        """The likeliest tokens at each position of the sample as matrices."""
        matrices: TopkLogprobs | None = read_array(self, "_topk_logprobs", TOPK)
        return matrices

    @classmethod
    def _map_official_arguments(cls, args: tuple[Any, ...], values: dict[str, Any]) -> dict[str, Any]:
        mapped = super()._map_official_arguments(args, values)
        mapped.setdefault("tokens", [])
        return mapped


class SampleResponseMixin(OfficialConstructor):
    """Samples and the results for their prompt."""

    __slots__ = ()
    _positions = (
        "sequences",
        "prompt_logprobs_np",
        "topk_prompt_logprobs_np",
        "target_prompt_logprobs",
        "prompt_cache_hit_tokens",
        "prompt_alt_tokens",
        "_prompt_logprobs_list",
        "_topk_prompt_logprobs_list",
    )
    _dual_fields = ("prompt_logprobs", "topk_prompt_logprobs")

    @property
    def prompt_logprobs(self) -> list[float | None] | None:
        """The logprob (nats) of each token of the prompt after those before it; None for the first."""
        logprobs: list[float | None] | None = read_list(self, "_prompt_logprobs", PROMPT_LOGPROBS)
        return logprobs

    @property
    def prompt_logprobs_np(self) -> Array | None:
        """The logprob (nats) of each token of the prompt, float32; NaN for the first."""
        array: Array | None = read_array(self, "_prompt_logprobs", PROMPT_LOGPROBS)
        return array

    @property
    def topk_prompt_logprobs(self) -> list[list[tuple[int, float]] | None] | None:
        """The likeliest tokens at each position of the prompt, best first; None for a position without."""
        pairs: list[list[tuple[int, float]] | None] | None = read_list(self, "_topk_prompt_logprobs", TOPK)
        return pairs

    @property
    def topk_prompt_logprobs_np(self) -> TopkLogprobs | None:
        """The likeliest tokens at each position of the prompt as matrices."""
        matrices: TopkLogprobs | None = read_array(self, "_topk_prompt_logprobs", TOPK)
        return matrices
