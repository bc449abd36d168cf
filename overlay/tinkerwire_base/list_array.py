"""Numbers of results under two names: the list that most code wants, and the array that binary messages hold.

A field keeps what it was given. The other form is made when it is first asked for, and kept beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MemberDescriptorType
from typing import Any

import attrs

from .lazy_numpy import Array, np
from .pickling import takes_official_pickles
from .tensors import flat_array

EMPTY_TOKEN, EMPTY_LOGPROB = 0, -99999.0
"""What fills the places of top-k matrices where there is no token; logprob in nats."""


@takes_official_pickles
@attrs.define(frozen=True, eq=False)
class TopkLogprobs:
    """The likeliest tokens at each place, best first, as two matrices of one row per place.

    Places with fewer tokens are filled with token 0 and logprob -99999.0.
    """

    token_ids: Array
    """Token ids, int32."""
    logprobs: Array
    """Logprobs (nats), float32."""


class Numbers:
    """Numbers as a list and as an array of one dtype; None in the list is NaN in the array.

    With ``gaps`` it is so the other way round as well.
    """

    def __init__(self, dtype: str, *, gaps: bool = False) -> None:
        self._dtype, self._gaps = dtype, gaps

    def to_array(self, listed: Sequence[Any]) -> Any:
        """The array of a list."""
        return flat_array(listed, self._dtype)

    def to_list(self, array: Any) -> list[Any]:
        """The list of an array."""
        found: list[Any] = array.tolist()
        if self._gaps:
            for position in np.flatnonzero(np.isnan(array)).tolist():
                found[position] = None
        return found


class Topk:
    """The likeliest tokens at each place: a list of (token, logprob) pairs, or None, for each; or two matrices."""

    def to_array(self, listed: Sequence[Any]) -> TopkLogprobs:
        """The matrices of lists; as wide as the longest of them."""
        shape = len(listed), max((len(pairs) for pairs in listed if pairs), default=0)
        tokens, logprobs = np.full(shape, EMPTY_TOKEN, np.int32), np.full(shape, EMPTY_LOGPROB, np.float32)
        for row, pairs in enumerate(listed):
            if pairs:
                tokens[row, : len(pairs)], logprobs[row, : len(pairs)] = zip(*pairs, strict=True)
        return TopkLogprobs(tokens, logprobs)

    def to_list(self, array: TopkLogprobs) -> list[Any]:
        """The lists of matrices: without the filling at the end of rows, and None for those that start with it."""
        if not array.token_ids.size:
            return []
        is_given = (array.token_ids != EMPTY_TOKEN) | (array.logprobs != EMPTY_LOGPROB)
        counts = np.where(is_given[:, 0], is_given.shape[1] - np.argmax(is_given[:, ::-1], axis=1), 0)
        rows = zip(array.token_ids.tolist(), array.logprobs.tolist(), counts.tolist(), strict=True)
        return [list(zip(tokens[:n], logprobs[:n], strict=True)) or None for tokens, logprobs, n in rows]


class Given:
    """Numbers whose array is only ever what was given."""

    def to_list(self, array: Any) -> list[Any]:
        """The list of an array."""
        found: list[Any] = array.tolist()
        return found


TOKENS, LOGPROBS, PROMPT_LOGPROBS = Numbers("int32"), Numbers("float32"), Numbers("float32", gaps=True)
TOPK, GIVEN = Topk(), Given()


@attrs.define
class Both:
    """What a slot holds once both forms are there."""

    listed: Any = None
    array: Any = None


class AsList:
    """Stands in front of the slot of a field and gives the list."""

    def __init__(self, slot: Any, form: Any) -> None:
        self.slot, self._form = slot, form

    def __get__(self, model: Any, cls: type) -> Any:
        if model is None:
            return self
        held = self.slot.__get__(model, cls)
        if held is None or type(held) is list or not isinstance(held, Both | TopkLogprobs | np.ndarray):
            return held
        both = _both(self.slot, model, held)
        if both.listed is None:
            both.listed = self._form.to_list(both.array)
        return both.listed

    def __set__(self, model: Any, value: Any) -> None:
        self.slot.__set__(model, value)


def length(model: Any, name: str) -> int | None:
    """How many places a model holds under a name of two forms, none of which is made for that; None for none."""
    held = getattr(type(model), name).slot.__get__(model)
    if isinstance(held, Both):
        held = held.array if held.listed is None else held.listed
    if isinstance(held, TopkLogprobs):
        held = held.token_ids
    return None if held is None else len(held)


class AsArray:
    """Gives the array of the same slot."""

    def __init__(self, slot: Any, form: Numbers | Topk) -> None:
        self._slot, self._form = slot, form

    def __get__(self, model: Any, cls: type) -> Any:
        if model is None:
            return self
        held = self._slot.__get__(model, cls)
        if held is None:
            return None
        both = _both(self._slot, model, held)
        if both.array is None:
            both.array = self._form.to_array(both.listed)
        return both.array


class AsGiven:
    """Gives what the same slot was given: an array or a list."""

    def __init__(self, listed: AsList) -> None:
        self._slot = listed.slot

    def __get__(self, model: Any, cls: type) -> Any:
        if model is None:
            return self
        held = self._slot.__get__(model, cls)
        if type(held) is Both:
            return held.listed if held.array is None else held.array
        return held


def stand_in(cls: Any, forms: Mapping[str, Any]) -> None:
    """Put AsList in front of the slots of these fields, once a class has them; copies and pickles keep all forms."""
    # Attrs makes each class twice; the second time it has slots.
    found = {name: cls.__dict__[name] for name in forms if isinstance(cls.__dict__.get(name), MemberDescriptorType)}
    if not found:
        return
    for name, slot in found.items():
        setattr(cls, name, AsList(slot, forms[name]))
    attributes = cls.__attrs_attrs__

    def getstate(self: Any) -> dict[str, Any]:
        slots = ((a.name, found.get(a.name)) for a in attributes)
        return {name: slot.__get__(self) if slot else getattr(self, name) for name, slot in slots}

    cls.__getstate__ = getstate


def _both(slot: Any, model: Any, held: Any) -> Both:
    if isinstance(held, Both):
        return held
    found = Both(array=held) if isinstance(held, np.ndarray | TopkLogprobs) else Both(listed=held)
    slot.__set__(model, found)
    return found
