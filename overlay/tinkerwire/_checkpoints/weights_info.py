"""What a client needs to know of saved weights before it asks for them: their kind, and the model they fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from tinkerwire_base.errors import APIStatusError, TinkerError
from tinkerwire_base.mixins.behaviour import CHECKPOINT_KINDS, TINKER_SCHEME
from tinkerwire_base.validators import require_optional, require_text
from tinkerwire_generated.api.runs import get_training_run
from tinkerwire_generated.api.weights import weights_info
from tinkerwire_generated.models import WeightsInfoRequest

from .._connection.connection import Connection
from .._connection.dialect_resolver import ENDPOINT_MISSING
from .._credentials.secret import is_sendable
from .._transport.backpressure import Traffic


@attrs.frozen(kw_only=True)
class WeightsInfo:
    """The model that saved weights come from."""

    base_model: str | None
    lora_rank: int
    train_unembed: bool = True
    train_mlp: bool = True
    train_attn: bool = True
    user_metadata: Mapping[str, Any] | None = None
    """None where the server does not say."""


@attrs.frozen
class CheckpointAddress:
    """The ids of a checkpoint in the URLs of the REST calls."""

    training_run_id: str
    checkpoint_id: str
    """``weights/NAME``, ``sampler_weights/NAME``, or what a server has in their place."""


def checkpoint_kind(path: str) -> str | None:
    """Return the kind of the weights at a path: training, sampler or external; None where the path does not say."""
    segments = _segments(path)
    return CHECKPOINT_KINDS.get(segments[-2]) if len(segments) > 2 else None


def checkpoint_address(path: str, *, name: str = "tinker_path") -> CheckpointAddress:
    """Return the ids in a path of saved weights, whatever its scheme; ``name`` is the argument's.

    Raises:
        ValueError: the path does not have two parts, a run and a checkpoint.
    """
    check_path(path, name=name)
    segments = _segments(path)
    if len(segments) < 2:
        raise ValueError(
            f"{name}: {path!r:.200} must name a run and a checkpoint, as in {TINKER_SCHEME}RUN/weights/NAME, for this "
            "call; take the tinker_path of a listed checkpoint"
        )
    if checkpoint_kind(path) is not None:
        return CheckpointAddress("/".join(segments[:-2]), "/".join(segments[-2:]))
    return CheckpointAddress(segments[0], "/".join(segments[1:]))


def check_path_of_kind(wrong_kind: str, path: str, purpose: str, *, name: str = "path") -> None:
    """Refuse what is certainly no path of saved weights, and paths of the one kind that does not serve a purpose.

    Servers name paths in their own ways, and decide about all others. ``name`` is the argument's.

    Raises:
        ValueError: the path is empty, or of the wrong kind.
        TypeError: the path is not a str.
    """
    check_path(path, name=name)
    if checkpoint_kind(path) == wrong_kind:
        other = "save_state" if wrong_kind == "sampler" else "save_weights_for_sampler"
        raise ValueError(
            f"{name}: {path!r} holds {wrong_kind} weights, which cannot {purpose}; give a path that {other} returned"
        )


def check_path(path: str, *, name: str = "path") -> None:
    """Refuse what is certainly no path of saved weights.

    Raises:
        ValueError: the path is empty.
        TypeError: the path is not a str.
    """
    require_text(name, path)
    if not path.strip():
        raise ValueError(f"{name}: {path!r} is empty; saving returns a path in the .path of its result")


def _segments(path: str) -> list[str]:
    """Return the parts of a path between slashes, without the scheme."""
    scheme, mark, rest = path.partition("://")
    return [segment for segment in (rest if mark else scheme).split("/") if segment]


def refuse_odd_token(token: str | None) -> None:
    """TypeError or ValueError for what cannot be a weights access token; it is not shown."""
    require_optional("weights_access_token", token, str)
    if token and not is_sendable(token):
        raise ValueError("weights_access_token: it holds blanks or characters beyond printable ASCII")


def base_model_of(connection: Connection, path: str) -> str | None:
    """Return the base model of the weights at a path, if a model made over this connection saved them."""
    segments = _segments(path)
    return connection.known_models.base_models.get(segments[0]) if segments else None


async def source_of(connection: Connection, path: str) -> WeightsInfo:
    """The model that the weights at ``path`` come from, by weights_info or, where that is missing, by their run."""
    if (await connection.dialect()).may_have_operation("weights_info"):
        try:
            info = await connection.call(weights_info(body=WeightsInfoRequest(tinker_path=path)), Traffic.REST)
        except APIStatusError as error:
            if error.status_code not in ENDPOINT_MISSING:
                raise
        else:
            return WeightsInfo(
                base_model=info.base_model,
                lora_rank=_rank(path, info.lora_rank),
                train_unembed=info.train_unembed is not False,
                train_mlp=info.train_mlp is not False,
                train_attn=info.train_attn is not False,
            )
    run_id = checkpoint_address(path, name="path").training_run_id
    run = await connection.call(get_training_run(run_id), Traffic.REST)
    return WeightsInfo(base_model=run.base_model, lora_rank=_rank(path, run.lora_rank), user_metadata=run.user_metadata)


def _rank(path: str, rank: int | None) -> int:
    if rank is None:
        raise TinkerError(f"{path}: the server does not say of which LoRA rank these weights are")
    return rank
