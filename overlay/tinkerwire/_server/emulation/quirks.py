"""The ways of other servers, as named switches: clients rehearse on them what they will meet elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
from typing_extensions import Self

from tinkerwire_generated.operations import OPERATIONS

OPTIONAL = frozenset(
    {
        "assign_session_project",
        "cancel_future",
        "client_config",
        "client_dynamic_config",
        "finish_session",
        "get_sampler",
        "get_session",
        "join_sampling_session",
        "list_checkpoints",
        "list_sessions",
        "list_user_checkpoints",
        "publish_checkpoint",
        "retrieve_futures",
        "set_checkpoint_ttl",
        "telemetry",
        "unpublish_checkpoint",
        "weights_info",
    }
)
"""Calls without which models can be trained, saved, loaded and sampled."""


def _one_of(*choices: str) -> Any:
    def check(instance: object, attribute: attrs.Attribute[str], value: str) -> None:
        if value not in choices:
            raise ValueError(f"{attribute.name}: {value!r} is not one of {', '.join(choices)}")

    return attrs.field(default=choices[0], validator=check)


def _names(names: Iterable[str]) -> frozenset[str]:
    given = frozenset([names] if isinstance(names, str) else names)
    return given - {"optional"} | OPTIONAL if "optional" in given else given


def _not_negative(instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    if not 0 <= value < float("inf"):
        raise ValueError(f"{attribute.name}: {value!r} is no time; give seconds, 0 or more")


@attrs.frozen(kw_only=True)
class Quirks:
    """How a server differs from the official one. The defaults are the ways of the official one.

    Raises:
        ValueError: a value that a switch does not have, or an unknown operation.
    """

    result_delay_s: float = attrs.field(default=0.0, validator=_not_negative)
    """No result shows before this many seconds have passed since it was first asked for; each question is held as
    ever (``long_poll_s``), and then answered "not ready"."""
    not_ready: str = _one_of("408", "try_again")
    """The answer to a question for a result that is not there: status 408, or 200 with a try_again object."""
    failure: str = _one_of("error", "detail", "object", "category", "400", "404", "409", "422", "500")
    """How failed work is told: status 200 with an error and its category, with a detail alone, with an object in
    place of the text, with a category that nobody knows; or a status with a detail. 500 is said for ever, with text
    that is no JSON."""
    batches: str = _one_of("any", "json", "messages")
    """The one form of forward and forward_backward that is taken, of those that the wire version has."""
    refusal: str = _one_of("415", "400", "404", "405", "406", "422", "500", "501", "502", "dropped")
    """The status by which the other form is refused, or dropped for a connection that is closed without a response."""
    applies_refused: bool = False
    """A batch in the refused form is done all the same; where both forms are taken, the very first batch is refused so.
    Resends of batches are then known by their seq_id alone, whatever their form and key."""
    flags: str = _one_of("given", "absent")
    """True if client/config holds any flags."""
    results: str = _one_of("asked", "messages", "json")
    """In which form batches and samples are answered, where the wire version has both: as asked, or in one
    whatever Accept says."""
    lacks: frozenset[str] = attrs.field(default=frozenset(), converter=_names)
    """Operations that are not there, by name; ``optional`` stands for all that training and sampling can go without."""
    missing: str = _one_of("404", "405")
    """The status by which that is said."""
    short_paths: bool = False
    """save_weights_for_sampler names ``tinker://MODEL/NAME``, and that can be sampled from; listings name the whole."""
    prompt_logprobs: str = _one_of("whole", "short", "absent")
    """Those of a prompt of N tokens: N with null first, N-1 without it, or none."""
    topk: str = _one_of("given", "ignored", "refused")
    """What becomes of a wish for the likeliest tokens: kept, dropped, or refused with 400."""
    metrics: str = _one_of("given", "empty", "null")
    """Those of batches and of optim_step; binary messages have no null, and are empty then."""
    load_first: bool = False
    """load_weights is refused, with 400, unless it is the first operation on its model."""
    counts_refused: bool = False
    """The seq_id of a refused operation is used up: another operation under it is a conflict. For the opposite, a
    gap that makes every later one a conflict, there is ``strict_sequence``."""
    ids: str = _one_of("own", "integer", "uuid", "prefixed")
    """The form of request ids."""

    def __attrs_post_init__(self) -> None:
        unknown = sorted(self.lacks - OPERATIONS.keys())
        if unknown:
            raise ValueError(
                f"lacks: {', '.join(unknown)} is no operation; there are optional, {', '.join(OPERATIONS)}"
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``failure=500,short_paths,lacks=telemetry+weights_info``; ValueError names what is wrong."""
        fields = {field.name: field for field in attrs.fields(cls)}
        values: dict[str, object] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, equals, value = part.partition("=")
            if name not in fields:
                raise ValueError(f"{part!r} is not understood; the switches are {', '.join(fields)}")
            is_switch = isinstance(fields[name].default, bool)
            if is_switch == bool(equals):
                raise ValueError(f"{part!r}: write {name}{'' if is_switch else '=VALUE'}")
            values[name] = True if is_switch else _value(name, value)
        return cls(**values)  # type: ignore[arg-type]


def _value(name: str, text: str) -> object:
    if name == "lacks":
        return frozenset(text.split("+"))
    if name != "result_delay_s":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name}: {text!r} is not a number of seconds") from None
