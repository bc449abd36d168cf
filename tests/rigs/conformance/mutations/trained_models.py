"""Mutations of the creation and the description of models."""

from __future__ import annotations

import itertools
import json
from typing import Any

import attrs
import numpy as np

from tinkerwire._server.engine import lora
from tinkerwire_base.call import WireRequest

from . import patches
from .mutation import Group

GROUP = Group("Models")
CREATE = "create_model"


def _set_lora(*, is_lenient: bool = False, **values: Any) -> None:
    def change(body: dict[str, Any]) -> None:
        if isinstance(body.get("lora_config"), dict):
            body["lora_config"].update(
                {name: value(body) if callable(value) else value for name, value in values.items()}
            )

    patches.change_request_body(CREATE, change, is_lenient=is_lenient)


@GROUP.mutation("MOD-001", "SES-009")
def model_id_empty() -> None:
    """The id of each new model is empty."""
    patches.change_field("retrieve_future", "model_id", lambda _: "")


@GROUP.mutation("MOD-002", "WGT-015")
def description_of_another() -> None:
    """get_info describes another model."""
    patches.set_field("get_info", model_id="other")


@GROUP.mutation("MOD-003")
def description_of_another_base() -> None:
    """get_info names another base model."""
    patches.set_field("get_info", model_name="other", model_data={"model_name": "other"})


@GROUP.mutation("MOD-004", "MOD-015")
def rank_is_fixed() -> None:
    """Each model has rank 4."""
    _set_lora(rank=4)


@GROUP.mutation("MOD-015")
def rank_zero_accepted() -> None:
    """A model of rank 0 is created with rank 1."""

    def rank_of(body: dict[str, Any]) -> Any:
        rank = body["lora_config"].get("rank", 1)
        return 1 if type(rank) is int and rank == 0 else rank

    _set_lora(rank=rank_of, is_lenient=True)


@GROUP.mutation(
    *("BAD-016", "BAD-017", "BAD-018", "BAD-019", "BAD-020", "FUT-001", "MOD-004", "MOD-005", "MOD-009"),
    *("MOD-010", "MOD-016", "RUN-006", "RUN-009", "TRN-001", "TRN-003", "WGT-001", "WGT-002", "WGT-004"),
)
def model_ids_equal() -> None:
    """Each new model has the id of the first."""
    first: dict[str, str] = {}
    patches.change_field("retrieve_future", "model_id", lambda model_id: first.setdefault("id", model_id))


@GROUP.mutation("MOD-007", "MOD-008", "TRN-033")
def adapter_adds_at_the_start() -> None:
    """New adapters are random in both factors, and add something before the first step."""
    numbers = itertools.count()

    class Numpy:
        def __getattr__(self, name: str) -> Any:
            if name == "zeros":
                return lambda shape, dtype=None: (
                    np.random.default_rng(next(numbers)).normal(0, 0.3, shape).astype(dtype)
                )
            return getattr(np, name)

    lora.np = Numpy()  # type: ignore[assignment]


@GROUP.mutation("MOD-008", "MOD-014")
def seed_of_model_random() -> None:
    """Each model has another seed than the one asked for."""
    numbers = itertools.count()
    _set_lora(seed=lambda _: next(numbers))


@GROUP.mutation("MOD-009")
def seed_of_model_fixed() -> None:
    """Each model has seed 1."""
    _set_lora(seed=1)


@GROUP.mutation("MOD-010")
def train_mlp_ignored() -> None:
    """Each model has adapters on its MLP layers."""
    _set_lora(train_mlp=True)


@GROUP.mutation("MOD-011")
def unknown_base_replaced() -> None:
    """Unknown base models are replaced by the smallest model."""
    patches.change_request_body(CREATE, lambda body: body.update(base_model="tinkerwire/byte-nano"))


@GROUP.mutation("MOD-012")
def unknown_model_described() -> None:
    """get_info describes unknown models."""
    patches.respond(
        "get_info",
        200,
        b'{"model_id":"no-such-model","model_data":{}}',
        when=lambda _, response: response.status == 404,
    )


@GROUP.mutation("BAD-006", "MOD-014")
def model_of_each_resend() -> None:
    """A create_model that is resent creates another model."""
    numbers = itertools.count(5000)

    def change(request: WireRequest) -> WireRequest:
        body = patches.read(request.content)
        # Other bodies stay wrong.
        if not isinstance(body, dict) or type(body.get("model_seq_id")) is not int or body["model_seq_id"] < 0:
            return request
        headers = {**request.headers, "x-idempotency-key": str(next(numbers))}
        return attrs.evolve(
            request, content=json.dumps({**body, "model_seq_id": next(numbers)}).encode(), headers=headers
        )

    patches.change_request(CREATE, change)


@GROUP.mutation("MOD-016", "RUN-006")
def model_metadata_dropped() -> None:
    """A model forgets its user_metadata."""
    patches.change_request_body(CREATE, lambda body: body.pop("user_metadata", None))


@GROUP.mutation("BAD-017", "MOD-017")
def optimizer_config_required() -> None:
    """create_model rejects a request without optimizer_config."""
    patches.respond(CREATE, 422, when=lambda request, _: b"optimizer_config" not in (request.content or b""))


@GROUP.mutation("MOD-018", "TRN-047", "WGT-018", wire="0.16.1")
def unload_fails() -> None:
    """unload_model is answered with 500."""
    patches.respond("unload_model", 500)
