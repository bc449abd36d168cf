"""The model that saved weights belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from tinkerwire_base.errors import APIStatusError, TinkerError
from tinkerwire_generated import models
from tinkerwire_generated.api.runs import get_training_run
from tinkerwire_generated.api.weights import weights_info

from .._connection.connection import Connection
from .._connection.dialect_resolver import ENDPOINT_MISSING
from .._transport.backpressure import Traffic
from .paths import parse_checkpoint_address, split_path


@attrs.frozen(kw_only=True)
class WeightsInfo:
    """The configuration of the model that saved weights belong to."""

    base_model: str | None
    lora_rank: int
    train_unembed: bool = True
    train_mlp: bool = True
    train_attn: bool = True
    user_metadata: Mapping[str, Any] | None = None
    """None if the server does not report it."""


def find_base_model(connection: Connection, path: str) -> str | None:
    """Return the base model of the weights at a path, if a model made over this connection saved them."""
    segments = split_path(path)
    return connection.known_models.base_models.get(segments[0]) if segments else None


async def fetch_weights_info(connection: Connection, path: str) -> WeightsInfo:
    """Fetch the model configuration of the weights at a path.

    A server without the call weights_info reports the configuration of the training run.

    Raises:
        TinkerError: a request failed, or the server does not report the LoRA rank.
        ValueError: the server does not have weights_info, and the path does not name a run.
    """
    if (await connection.dialect()).may_have_operation("weights_info"):
        try:
            info = await connection.call(weights_info(body=models.WeightsInfoRequest(tinker_path=path)), Traffic.REST)
        except APIStatusError as error:
            if error.status_code not in ENDPOINT_MISSING:
                raise
        else:
            return WeightsInfo(
                base_model=info.base_model,
                lora_rank=_require_rank(path, info.lora_rank),
                train_unembed=info.train_unembed is not False,
                train_mlp=info.train_mlp is not False,
                train_attn=info.train_attn is not False,
            )
    run_id = parse_checkpoint_address(path, name="path").training_run_id
    run = await connection.call(get_training_run(run_id), Traffic.REST)
    return WeightsInfo(
        base_model=run.base_model, lora_rank=_require_rank(path, run.lora_rank), user_metadata=run.user_metadata
    )


def _require_rank(path: str, rank: int | None) -> int:
    if rank is None:
        raise TinkerError(f"{path}: the server does not report the LoRA rank of these weights")
    return rank
