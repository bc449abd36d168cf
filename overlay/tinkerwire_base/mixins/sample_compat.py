"""Results of sampling with every name that they have in official code: lists, arrays, and private keywords."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ..lazy_numpy import Array
from ..list_array import (
    LOGPROBS,
    PROMPT_LOGPROBS,
    TOKENS,
    TOPK,
    AsArray,
    AsList,
    Both,
    Numbers,
    Topk,
    TopkLogprobs,
    stand_in,
)


class _Results:
    """A constructor that takes the official arguments too, and two names for each sequence of numbers."""

    __slots__ = ()
    _positions: tuple[str, ...] = ()
    """The official arguments in their order."""
    _twofold: ClassVar[Mapping[str, Numbers | Topk]] = {}
    """What is both a list NAME and an array NAME_np, and comes as _NAME_list or NAME_np in official arguments."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        stand_in(cls, cls._twofold)
        for name, form in cls._twofold.items():
            listed = cls.__dict__.get(name)
            if isinstance(listed, AsList):
                setattr(cls, f"{name}_np", AsArray(listed.slot, form))
        # Attrs makes each class twice; the second time it has a constructor.
        if "__attrs_attrs__" in cls.__dict__:
            setattr(cls, "__init__", _taking_official(cls, cls.__dict__["__init__"]))  # noqa: B010  (mypy)

    @classmethod
    def _of_official_state(cls, values: dict[str, Any]) -> dict[str, Any]:
        """The fields in the state of an official result."""
        return cls._of_official((), values)

    @classmethod
    def _of_official(cls, args: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
        """The arguments of the generated constructor for official ones."""
        if len(args) > len(cls._positions):
            raise TypeError(f"{cls.__name__} takes at most {len(cls._positions)} positional arguments, got {len(args)}")
        for name, value in zip(cls._positions, args, strict=False):
            if name in given:
                raise TypeError(f"{cls.__name__}: {name} is given twice")
            given[name] = value
        for name in cls._twofold:
            held = Both(given.pop(f"_{name}_list", None), given.pop(f"{name}_np", None))
            if held.listed is not None or held.array is not None:
                given[name] = held
        return given


def _taking_official(cls: Any, made: Callable[..., None]) -> Callable[..., None]:
    fields = frozenset(attribute.alias for attribute in cls.__attrs_attrs__)

    @functools.wraps(made)
    def init(self: Any, *args: Any, **given: Any) -> None:
        if args or not given.keys() <= fields:
            given = cls._of_official(args, given)
        made(self, **given)

    return init


class SampledSequenceMixin(_Results):
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
    _twofold: ClassVar[Mapping[str, Numbers | Topk]] = {"tokens": TOKENS, "logprobs": LOGPROBS, "topk_logprobs": TOPK}
    if TYPE_CHECKING:
        tokens_np: Array
        logprobs_np: Array | None
        topk_logprobs_np: TopkLogprobs | None

    @classmethod
    def _of_official(cls, args: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
        found = super()._of_official(args, given)
        found.setdefault("tokens", [])
        return found


class SampleResponseMixin(_Results):
    """Samples, and what was computed on their prompt."""

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
    _twofold: ClassVar[Mapping[str, Numbers | Topk]] = {
        "prompt_logprobs": PROMPT_LOGPROBS,
        "topk_prompt_logprobs": TOPK,
    }
    if TYPE_CHECKING:
        prompt_logprobs_np: Array | None
        topk_prompt_logprobs_np: TopkLogprobs | None
