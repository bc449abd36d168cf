"""Losses that were made once for a session: the server computes them where it does that, else this side does."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import orjson

from tinkerwire_generated.api.training import create_custom_loss
from tinkerwire_generated.models import CreateCustomLossRequest, CreateCustomLossResponse, CustomLossInput, Datum

from ..._polling.poller import PendingResult, Poll
from ..._session.session import Session
from ..._transport.backpressure import Traffic
from ..._wire.loss_graph import LOGPROBS
from .client_loss import TARGET_TOKENS, CustomLossFn
from .tracing import TracedLoss

if TYPE_CHECKING:
    import torch.fx  # pyright: ignore[reportMissingImports]

PerDatumLossFn = Callable[..., tuple[Any, dict[str, Any]]]
"""A loss of one datum: from its log probabilities and what else it reads of its loss_fn_inputs, torch tensors all, to
(loss, metrics), a tensor of one number and a dict of such tensors, called custom/NAME:sum or custom/NAME:mean."""


@attrs.frozen(eq=False)
class LossHandle:
    """A loss that ServiceClient.create_custom_loss made, for forward_backward_custom of the clients of its session."""

    name: str
    inputs: tuple[CustomLossInput, ...]
    """logprobs, and what else the loss reads, with their numbers of dimensions."""
    session_id: str
    graph: torch.fx.GraphModule = attrs.field(repr=False)
    """Computes the loss of one datum."""
    loss_id: str | None = None
    """What the server calls the loss; None where this side computes it."""

    @property
    def key(self) -> str:
        """The same text for the same computation of the same inputs, whatever the loss is called."""
        what = [self.graph.code, *((each.name, each.rank) for each in self.inputs)]
        return hashlib.sha256(orjson.dumps(what)).hexdigest()

    @property
    def input_names(self) -> tuple[str, ...]:
        """What a datum has to have in its loss_fn_inputs, beside target_tokens."""
        return tuple(each.name for each in self.inputs if each.name != LOGPROBS)

    def check(self, data: Sequence[Datum], session_id: str | None) -> None:
        """ValueError unless the loss is of this session, and each datum has what it reads."""
        if session_id != self.session_id:
            raise ValueError(
                f"loss {self.name}: it was made in session {self.session_id}, this client is of "
                f"{session_id or 'one that has not begun'}; call create_custom_loss of the ServiceClient that made "
                "this client"
            )
        for position, datum in enumerate(data):
            for each in self.inputs:
                key = TARGET_TOKENS if each.name == LOGPROBS else each.name
                found = datum.loss_fn_inputs.get(key)
                if found is None:
                    raise ValueError(f"data[{position}]: no {key} among its loss_fn_inputs; loss {self.name} reads it")
                dimensions = found.to_numpy().ndim
                if dimensions != each.rank:
                    raise ValueError(
                        f"data[{position}]: its {key} has {dimensions} dimensions; loss {self.name} was made for "
                        f"{each.rank}"
                    )

    def batch_loss(self) -> CustomLossFn:
        """The loss of a batch: the sum over its datums, with metrics that are sums or means over those."""

        def loss_fn(data: list[Datum], logprobs: list[Any]) -> tuple[Any, dict[str, float]]:
            total: Any = 0.0
            metrics: dict[str, float] = {}
            for position, (datum, own) in enumerate(zip(data, logprobs, strict=True)):
                # Copies, as steps may change tensors in place.
                others = [datum.loss_fn_inputs[name].to_torch().clone() for name in self.input_names]
                loss, found = self.graph(own, *others)
                total = total + self._single(position, "its loss", loss)
                for name, value in found.items():
                    share = float(self._single(position, name, value).detach())
                    metrics[name] = metrics.get(name, 0.0) + (share / len(data) if name.endswith(":mean") else share)
            return total, metrics

        return loss_fn

    def _single(self, position: int, what: str, value: Any) -> Any:
        """A tensor of one number, without its dimensions."""
        if not hasattr(value, "numel") or value.numel() != 1:
            found = f"the shape {list(value.shape)}" if hasattr(value, "shape") else f"the type {type(value).__name__}"
            raise ValueError(
                f"loss {self.name}: data[{position}]: {what} has {found}; make it a tensor of one number, as by .sum()"
            )
        return value.reshape(())


class CustomLosses:
    """The losses made in one session. Used on the loop thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: set[bytes] = set()

    async def create(self, traced: TracedLoss) -> LossHandle:
        """The handle of a loss; the server has it where its client/config says so.

        Raises:
            ValueError: the session has this very loss; nothing was sent.
            TinkerError: what handing it over met.
        """
        session_id = await self._session.id()
        text = orjson.dumps([traced.name, *(attrs.asdict(part) for part in (*traced.inputs, traced.graph))])
        if text in self._known:
            raise ValueError(f"create_custom_loss: {traced.name}: this session has this very loss; use its LossHandle")
        self._known.add(text)
        try:
            loss_id = await self._upload(session_id, traced)
        except BaseException:
            self._known.discard(text)
            raise
        return LossHandle(traced.name, traced.inputs, session_id, traced.module, loss_id)

    async def _upload(self, session_id: str, traced: TracedLoss) -> str | None:
        connection = self._session.connection
        if not (await connection.dialect()).config.custom_loss_server_side:
            return None
        body = CreateCustomLossRequest(
            session_id=session_id,
            custom_loss_seq_id=self._session.next_custom_loss_seq_id(),
            name=traced.name,
            inputs=list(traced.inputs),
            graph=traced.graph,
        )
        asked = await connection.submit(create_custom_loss(body=body), Traffic.TRAINING)
        promise = PendingResult(
            submission=asked,
            request_type="CreateCustomLoss",
            result_type=CreateCustomLossResponse,
            traffic=Traffic.TRAINING_FUTURES,
        )
        return (await Poll(connection, promise, connection.retry).result()).loss_id
