"""What a client needs to know of saved weights before it asks for them: their kind, and the model they fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from tinkerwire_base.checks import expect, is_text
from tinkerwire_base.errors import APIStatusError, TinkerError
from tinkerwire_generated.api.runs import get_training_run
from tinkerwire_generated.api.weights import weights_info
from tinkerwire_generated.models import ParsedCheckpointTinkerPath, WeightsInfoRequest

from .credentials.secret import is_sendable
from .sending.backpressure import Traffic
from .sending.connection import Connection
from .sending.discovery import ABSENT

SCHEME = "tinker://"


@attrs.frozen(kw_only=True)
class Source:
    """The model that saved weights come from."""

    base_model: str
    lora_rank: int
    train_unembed: bool = True
    train_mlp: bool = True
    train_attn: bool = True
    user_metadata: Mapping[str, Any] | None = None
    """None where the server does not say."""


def refuse_path_of_kind(kind: str, path: str, purpose: str, *, name: str = "path") -> None:
    """ValueError for a path that is none, or whose weights are of the one ``kind`` that does not serve ``purpose``.

    Servers name paths in their own ways, so only what is certainly wrong is refused. ``name`` is the argument's.
    """
    refuse_other_schemes(path, name=name)
    try:
        parsed = ParsedCheckpointTinkerPath.from_tinker_path(path)
    except ValueError:
        return
    if parsed.checkpoint_type == kind:
        other = "save_state" if kind == "sampler" else "save_weights_for_sampler"
        raise ValueError(
            f"{name}: {path!r} holds {kind} weights, which cannot {purpose}; give a path that {other} returned"
        )


def refuse_other_schemes(path: str, *, name: str = "path") -> None:
    """ValueError for what is certainly no path of saved weights; ``name`` is the argument's."""
    if not isinstance(path, str) or not path.startswith(SCHEME):
        raise ValueError(f"{name}: {path!r:.200} is not a {SCHEME} path; saving gives one in the .path of its result")
    is_text(name, path)


def refuse_odd_token(token: str | None) -> None:
    """TypeError or ValueError for what cannot be a weights access token; it is not shown."""
    expect("weights_access_token", token, str)
    if token and not is_sendable(token):
        raise ValueError("weights_access_token: it holds blanks or characters beyond printable ASCII")


async def source_of(connection: Connection, path: str) -> Source:
    """The model that the weights at ``path`` come from, by weights_info or, where that is missing, by their run."""
    if (await connection.dialect()).may_have_operation("weights_info"):
        try:
            info = await connection.call(weights_info(body=WeightsInfoRequest(tinker_path=path)), Traffic.REST)
        except APIStatusError as fault:
            if fault.status_code not in ABSENT:
                raise
        else:
            return Source(
                base_model=info.base_model,
                lora_rank=_rank(path, info.lora_rank),
                train_unembed=info.train_unembed is not False,
                train_mlp=info.train_mlp is not False,
                train_attn=info.train_attn is not False,
            )
    run_id = ParsedCheckpointTinkerPath.from_tinker_path(path).training_run_id
    run = await connection.call(get_training_run(run_id), Traffic.REST)
    return Source(base_model=run.base_model, lora_rank=_rank(path, run.lora_rank), user_metadata=run.user_metadata)


def _rank(path: str, rank: int | None) -> int:
    if rank is None:
        raise TinkerError(f"{path}: the server does not say of which LoRA rank these weights are")
    return rank
