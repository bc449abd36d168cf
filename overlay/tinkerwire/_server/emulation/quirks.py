"""Quirks: behaviour of other servers that this server can emulate, to test clients against."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from typing_extensions import Self

from tinkerwire._server.options import (
    choice_field,
    known_operations,
    parse_options,
    read_names,
    validate_seconds,
    validate_switch,
)

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
"""Operations that clients need neither to train nor to save, load or sample models."""


def _expand_names(names: str | Iterable[str]) -> frozenset[str]:
    """Return names of operations, with ``optional`` replaced by :data:`OPTIONAL`."""
    expanded = frozenset(read_names("missing", names))
    return (expanded - {"optional"}) | OPTIONAL if "optional" in expanded else expanded


@attrs.frozen(kw_only=True)
class Quirks:
    """Differences from the official server. The defaults are the behaviour of the official server.

    Raises:
        TypeError: a quirk has a value of the wrong type.
        ValueError: a quirk has an invalid value, or names an unknown operation.
    """

    result_delay_s: float = attrs.field(default=0.0, validator=validate_seconds)
    """Seconds between the first poll for a result and the first poll that returns the result. Earlier polls are
    held for ``long_poll_s`` as usual, then answered "not ready"."""
    not_ready: str = choice_field("408", "try_again")
    """Response to a poll for a result that is not ready: status 408, or status 200 with a try_again object."""
    failure: str = choice_field("error", "detail", "object", "category", "400", "404", "409", "422", "500")
    """Form of failed results. With status 200: an error with its category, a detail only, an object in place of
    the text, or an unknown category. Otherwise a status with a detail. Status 500 has a plain text body, and every
    poll gets it."""
    batches: str = choice_field("any", "json", "protobuf")
    """The only accepted encoding of forward and forward_backward, of those that the wire version has."""
    rejection: str = choice_field("415", "400", "404", "405", "406", "422", "500", "501", "502", "dropped")
    """Status that rejects the other encoding; ``dropped`` closes the connection without a response."""
    executes_rejected: bool = attrs.field(default=False, validator=validate_switch)
    """Execute a batch before its encoding is rejected. If both encodings are accepted, only the very first batch is
    rejected in this way. The server then recognises resent batches by seq_id alone, regardless of encoding and key."""
    flags: str = choice_field("present", "absent")
    """Flags in client/config."""
    results: str = choice_field("requested", "protobuf", "json")
    """Encoding of the results of batches and samples, where the wire version has both. ``requested`` follows the
    Accept header."""
    missing: frozenset[str] = attrs.field(
        default=frozenset(), converter=_expand_names, validator=known_operations("optional")
    )
    """Names of operations that do not exist; ``optional`` stands for all that training and sampling do not need."""
    missing_status: str = choice_field("404", "405")
    """Status of requests for such operations."""
    short_paths: bool = attrs.field(default=False, validator=validate_switch)
    """save_weights_for_sampler returns ``tinker://MODEL/NAME``, a path that can be sampled from. Listings show the
    full path."""
    prompt_logprobs: str = choice_field("full", "short", "absent")
    """Logprobs of a prompt of N tokens: N values with null first, N-1 values without it, or null."""
    topk: str = choice_field("supported", "ignored", "rejected")
    """Handling of requests for top-k logprobs. ``rejected`` answers them with status 400."""
    expected_tokens: str = choice_field("explained", "terse", "ignored")
    """Handling of an image whose number of tokens is not the expected one. ``explained`` and ``terse`` answer it with
    status 400; the official server is terse, and does not name the chunk. ``ignored`` accepts it."""
    metrics: str = choice_field("full", "empty", "null")
    """Metrics of batches and of optim_step. Protobuf has no null, so these metrics are empty there."""
    load_first: bool = attrs.field(default=False, validator=validate_switch)
    """Reject load_weights with status 400 unless it is the first operation on its model."""
    counts_rejected: bool = attrs.field(default=False, validator=validate_switch)
    """A rejected operation consumes its seq_id: another operation with this seq_id is a conflict. For the opposite, a
    gap that makes every later operation a conflict, see ``strict_sequence`` of EmbeddedServer."""
    ids: str = choice_field("default", "integer", "uuid", "prefixed")
    """Format of request ids."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a text such as ``failure=500,short_paths,missing=telemetry+weights_info``.

        Raises:
            ValueError: a part of the text is not valid; the error names it.
        """
        return parse_options(cls, text)
