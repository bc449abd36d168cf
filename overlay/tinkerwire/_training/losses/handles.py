"""Custom losses of a session: computed by the server if it supports them, otherwise by the client."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import orjson

from tinkerwire_generated import models
from tinkerwire_generated.api.training import create_custom_loss

from ..._polling.pending_result import PendingResult
from ..._polling.poller import Poller
from ..._session.session import Session
from ..._transport.backpressure import Traffic
from ..._wire.loss_graph import LOGPROBS
from .client_loss import TARGET_TOKENS, CustomLossFn
from .tracing import TracedLoss

if TYPE_CHECKING:
    import torch.fx  # pyright: ignore[reportMissingImports]

PerDatumLossFn = Callable[..., tuple[Any, dict[str, Any]]]
"""A loss of one datum: a function of its log probabilities and of some of its loss_fn_inputs, as torch tensors. It
returns (loss, metrics): a tensor of one number, and a dict of such tensors by custom/NAME:sum or custom/NAME:mean."""


@attrs.frozen(eq=False)
class LossHandle:
    """A custom loss, created by ServiceClient.create_custom_loss, for forward_backward_custom in its session."""

    name: str
    inputs: tuple[models.CustomLossInput, ...]
    """The inputs of the loss, logprobs among them, with their numbers of dimensions."""
    session_id: str
    graph: torch.fx.GraphModule = attrs.field(repr=False)
    """Computes the loss of one datum."""
    loss_id: str | None = None
    """Id of the loss on the server; None if the client computes it."""

    @property
    def key(self) -> str:
        """Digest of the computation and its inputs; the name of the loss does not matter."""
        content = [self.graph.code, *((loss_input.name, loss_input.rank) for loss_input in self.inputs)]
        return hashlib.sha256(orjson.dumps(content)).hexdigest()

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the loss_fn_inputs that each datum must have in addition to target_tokens."""
        return tuple(loss_input.name for loss_input in self.inputs if loss_input.name != LOGPROBS)

    def check(self, data: Sequence[models.Datum], session_id: str | None) -> None:
        """Raise ValueError unless the loss belongs to the session and each datum has its inputs."""
        if session_id != self.session_id:
            raise ValueError(
                f"loss {self.name}: expected a loss of session {session_id or '(not started)'}, got one of "
                f"{self.session_id}; call create_custom_loss of the ServiceClient that created this client"
            )
        for position, datum in enumerate(data):
            for loss_input in self.inputs:
                key = TARGET_TOKENS if loss_input.name == LOGPROBS else loss_input.name
                tensor = datum.loss_fn_inputs.get(key)
                if tensor is None:
                    raise ValueError(f"data[{position}]: no {key} in loss_fn_inputs; loss {self.name} requires it")
                dimensions = tensor.to_numpy().ndim
                if dimensions != loss_input.rank:
                    raise ValueError(
                        f"data[{position}]: {key} must have {loss_input.rank} dimensions for loss {self.name}, "
                        f"got {dimensions}"
                    )

    def batch_loss(self) -> CustomLossFn:
        """Return the loss of a batch: the sum over its datums, with metrics that are sums or means."""

        def loss_fn(data: list[models.Datum], logprobs: list[Any]) -> tuple[Any, dict[str, float]]:
            total: Any = 0.0
            metrics: dict[str, float] = {}
            for position, (datum, datum_logprobs) in enumerate(zip(data, logprobs, strict=True)):
                # Copies, because the loss may change tensors in place.
                inputs = [datum.loss_fn_inputs[name].to_torch().clone() for name in self.input_names]
                loss, datum_metrics = self.graph(datum_logprobs, *inputs)
                total = total + self._single(position, "the loss", loss)
                for name, value in datum_metrics.items():
                    share = float(self._single(position, name, value).detach())
                    metrics[name] = metrics.get(name, 0.0) + (share / len(data) if name.endswith(":mean") else share)
            return total, metrics

        return loss_fn

    def _single(self, position: int, name: str, value: Any) -> Any:
        """Return a tensor of one number without its dimensions."""
        if not hasattr(value, "numel") or value.numel() != 1:
            description = f"the shape {list(value.shape)}" if hasattr(value, "shape") else type(value).__name__
            raise ValueError(
                f"loss {self.name}: data[{position}]: {name} must be a tensor of one number, got {description}; "
                "reduce it, for example by .sum()"
            )
        return value.reshape(())


class CustomLosses:
    """The custom losses of one session. Used on the loop thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._uploaded_losses: set[bytes] = set()

    async def create(self, traced: TracedLoss) -> LossHandle:
        """Create the handle of a loss, and upload the loss if the server computes custom losses.

        Raises:
            ValueError: the session has an identical loss; nothing was sent.
            TinkerError: the upload failed.
        """
        session_id = await self._session.id()
        text = orjson.dumps([traced.name, *(attrs.asdict(part) for part in (*traced.inputs, traced.graph))])
        if text in self._uploaded_losses:
            raise ValueError(
                f"create_custom_loss: {traced.name}: this session has an identical loss; use its LossHandle"
            )
        self._uploaded_losses.add(text)
        try:
            loss_id = await self._upload(session_id, traced)
        except BaseException:
            self._uploaded_losses.discard(text)
            raise
        return LossHandle(traced.name, traced.inputs, session_id, traced.module, loss_id)

    async def _upload(self, session_id: str, traced: TracedLoss) -> str | None:
        connection = self._session.connection
        if not (await connection.dialect()).config.custom_loss_server_side:
            return None
        body = models.CreateCustomLossRequest(
            session_id=session_id,
            custom_loss_seq_id=self._session.next_custom_loss_seq_id(),
            name=traced.name,
            inputs=list(traced.inputs),
            graph=traced.graph,
        )
        submission = await connection.submit(create_custom_loss(body=body), Traffic.TRAINING)
        pending = PendingResult(
            submission=submission,
            request_type="CreateCustomLoss",
            result_type=models.CreateCustomLossResponse,
            traffic=Traffic.TRAINING_FUTURES,
        )
        return (await Poller(connection, pending, connection.retry).result()).loss_id
