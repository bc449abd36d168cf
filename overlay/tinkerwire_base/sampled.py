"""Results of sampling with every name that they have in official code: lists, arrays, and private keywords."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from .tensors import Array
from .twofold import LOGPROBS, TOKENS, TOPK, AsArray, AsList, Both, Numbers, Topk, TopkLogprobs, stand_in


class _Results:
    """A constructor that takes the official arguments too, and two names for each sequence of numbers."""

    __slots__ = ()
    _positions: tuple[str, ...] = ()
    """The official arguments in their order."""
    _twofold: ClassVar[Mapping[str, Numbers | Topk]] = {}
    """What is both a list NAME and an array NAME_np, and comes as _NAME_list or NAME_np in official arguments."""
    if TYPE_CHECKING:
        extra_fields: Any

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
    def _of_official(cls, fields: frozenset[str], args: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
        """The arguments of the generated constructor for official ones."""
        if len(args) > len(cls._positions):
            raise TypeError(f"{cls.__name__} takes at most {len(cls._positions)} positional arguments, got {len(args)}")
        for name, value in zip(cls._positions, args, strict=False):
            if name in given:
                raise TypeError(f"{cls.__name__}: {name} is given twice")
            given[name] = value
        for name, form in cls._twofold.items():
            held = Both(given.pop(f"_{name}_list", None), given.pop(f"{name}_np", None))
            if held.listed is not None or held.array is not None:
                given[name] = (
                    held if name in fields else form.to_list(held.array) if held.listed is None else held.listed
                )
        # What the contract has no field for is kept as a key that it does not know.
        others = {name: given.pop(name) for name in (*cls._positions, *cls._twofold) if name in given.keys() - fields}
        extra = {name: value for name, value in others.items() if value is not None}
        if extra:
            given["extra_fields"] = {**given.get("extra_fields", {}), **extra}
        return given

    def _extra(self, name: str) -> Any:
        return self.extra_fields.get(name)


def _taking_official(cls: Any, made: Callable[..., None]) -> Callable[..., None]:
    fields = frozenset(attribute.alias for attribute in cls.__attrs_attrs__)

    @functools.wraps(made)
    def init(self: Any, *args: Any, **given: Any) -> None:
        if args or not given.keys() <= fields:
            given = cls._of_official(fields, args, given)
        made(self, **given)

    return init


class SampledTokens(_Results):
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

    @classmethod
    def _of_official(cls, fields: frozenset[str], args: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
        found = super()._of_official(fields, args, given)
        found.setdefault("tokens", [])
        return found

    @property
    def sequence_id(self) -> str | None:
        """Identifies the sample within its session; None where the server gives none."""
        found: str | None = self._extra("sequence_id")
        return found

    @property
    def topk_logprobs(self) -> list[list[tuple[int, float]] | None] | None:
        """The likeliest tokens at each place, best first; None when they were not asked for."""
        found: list[list[tuple[int, float]] | None] | None = self._extra("topk_logprobs")
        return found

    @property
    def topk_logprobs_np(self) -> TopkLogprobs | None:
        """``topk_logprobs`` as two matrices."""
        return None if self.topk_logprobs is None else TOPK.to_array(self.topk_logprobs)


class PromptLogprobs(_Results):
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
    _twofold: ClassVar[Mapping[str, Numbers | Topk]] = {"prompt_logprobs": LOGPROBS, "topk_prompt_logprobs": TOPK}
    if TYPE_CHECKING:
        prompt_logprobs_np: Array | None
        topk_prompt_logprobs_np: TopkLogprobs | None

    @property
    def target_prompt_logprobs(self) -> Any:
        """Logprobs (nats) of the tokens that were asked for, a TensorData; None when there were none."""
        return self._extra("target_prompt_logprobs")

    @property
    def prompt_alt_tokens(self) -> Any:
        """Tokens drawn at each place of the prompt, and their logprobs; None when they were not asked for."""
        return self._extra("prompt_alt_tokens")
