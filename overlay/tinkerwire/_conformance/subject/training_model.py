"""A model on the server under test: its operations, each under the next seq_id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from tinkerwire_base.call import Call
from tinkerwire_generated import models
from tinkerwire_generated.api.training import forward, forward_backward, get_info, optim_step, unload_model
from tinkerwire_generated.api.weights import load_weights, save_weights, save_weights_for_sampler
from tinkerwire_generated.constants import CHECKPOINT_SEGMENTS, TINKER_SCHEME

from ..client.futures import Futures, QueuedWork, Result
from ..client.wire_client import WireClient
from ..violation import expect
from .saved_paths import SavedPaths

CROSS_ENTROPY = "cross_entropy"
TOKENS = (5, 9, 13, 17, 21, 25, 29, 33)
"""Tokens of most tests: a fixed length keeps servers that compile for each shape fast, and small ids exist in every
vocabulary."""


def make_datum(
    tokens: Sequence[int] = TOKENS, targets: Sequence[int] | None = None, weights: Sequence[float] | None = None
) -> models.Datum:
    """Return an example for cross_entropy; by default each token predicts the next one, with weight 1."""
    targets = [*tokens[1:], tokens[0]] if targets is None else list(targets)
    return models.Datum(
        model_input=models.ModelInput.from_ints(list(tokens)),
        loss_fn_inputs={
            "target_tokens": models.TensorData(data=targets, dtype="int64", shape=[len(targets)]),
            "weights": models.TensorData(
                data=[1.0] * len(targets) if weights is None else list(weights), dtype="float32", shape=[len(targets)]
            ),
        },
    )


def without_input(datum: models.Datum, name: str) -> models.Datum:
    """Return an example that lacks one input of its loss."""
    return attrs.evolve(
        datum, loss_fn_inputs={key: value for key, value in datum.loss_fn_inputs.items() if key != name}
    )


def logprobs_of(output: models.ForwardBackwardOutput) -> list[list[float]]:
    """Return the log probabilities of each datum as flat lists.

    Raises:
        Violation: a datum has none.
    """
    for index, item in enumerate(output.loss_fn_outputs):
        expect("logprobs" in item, f"logprobs in output {index}", ", ".join(item) or "no tensor")
    return [[float(value) for value in item["logprobs"].to_numpy().reshape(-1)] for item in output.loss_fn_outputs]


def _read_outputs(result: Result, number: int) -> models.ForwardBackwardOutput:
    """Return the result of a batch; raise Violation unless it has an output for each datum."""
    output: models.ForwardBackwardOutput = result.value
    received = len(output.loss_fn_outputs)
    expect(received == number, f"{number} outputs for {number} datums", received, result.exchange)
    return output


def make_loss_datum(
    tokens: Sequence[int], targets: Sequence[int], logprobs: Sequence[float], advantages: Sequence[float]
) -> models.Datum:
    """Return an example for the losses of reinforcement learning."""
    size = [len(targets)]
    return models.Datum(
        model_input=models.ModelInput.from_ints(list(tokens)),
        loss_fn_inputs={
            "target_tokens": models.TensorData(data=list(targets), dtype="int64", shape=size),
            "logprobs": models.TensorData(data=list(logprobs), dtype="float32", shape=size),
            "advantages": models.TensorData(data=list(advantages), dtype="float32", shape=size),
        },
    )


class TrainingModel:
    """A model with an adapter, and the number of its next operation.

    Args:
        client: sends the requests.
        model_id: id of the model.
        saved_paths: receives the paths of its checkpoints, which are deleted at the end of the run.
    """

    def __init__(self, client: WireClient, model_id: str, saved_paths: SavedPaths) -> None:
        self.id = model_id
        self.saved_paths = saved_paths
        self.next_seq_id = 1
        self.has_gradients = False
        """True after a forward_backward, until the next optim_step."""
        self.futures = Futures(client)
        self._client = client

    def take_seq_id(self) -> int:
        """Return the seq_id of the next operation."""
        self.next_seq_id += 1
        return self.next_seq_id - 1

    def checkpoint_path(self, kind: str, name: str) -> str:
        """Return the path that the contract has for a checkpoint of a kind: training, sampler or external."""
        return f"{TINKER_SCHEME}{self.id}/{CHECKPOINT_SEGMENTS[kind]}/{name}"

    # --- calls: they leave the seq_id to the caller, or take the next one ---------------------------------------------

    def forward_backward_call(
        self,
        data: Sequence[models.Datum],
        loss_fn: Any = CROSS_ENTROPY,
        config: dict[str, Any] | None = None,
        *,
        seq_id: int | None = None,
    ) -> Call[models.UntypedAPIFuture]:
        """Return a call of forward_backward."""
        self.has_gradients = True
        batch = models.ForwardBackwardInput(data=list(data), loss_fn=loss_fn, loss_fn_config=config)
        body = models.ForwardBackwardRequest(
            forward_backward_input=batch, model_id=self.id, seq_id=self.take_seq_id() if seq_id is None else seq_id
        )
        return forward_backward(body=body)

    def forward_call(
        self,
        data: Sequence[models.Datum],
        loss_fn: Any = CROSS_ENTROPY,
        config: dict[str, Any] | None = None,
        *,
        seq_id: int | None = None,
    ) -> Call[models.UntypedAPIFuture]:
        """Return a call of forward."""
        batch = models.ForwardBackwardInput(data=list(data), loss_fn=loss_fn, loss_fn_config=config)
        body = models.ForwardRequest(
            forward_input=batch, model_id=self.id, seq_id=self.take_seq_id() if seq_id is None else seq_id
        )
        return forward(body=body)

    def optim_step_call(self, *, seq_id: int | None = None, **adam: Any) -> Call[models.UntypedAPIFuture]:
        """Return a call of optim_step; ``adam`` are fields of AdamParams, by default a learning rate of 1e-2."""
        self.has_gradients = False
        params = models.AdamParams(**{"learning_rate": 1e-2, **adam})
        body = models.OptimStepRequest(
            model_id=self.id, adam_params=params, seq_id=self.take_seq_id() if seq_id is None else seq_id
        )
        return optim_step(body=body)

    def save_weights_call(self, name: str | None, **fields: Any) -> Call[models.UntypedAPIFuture]:
        """Return a call of save_weights; ``fields`` are further ones of SaveWeightsRequest."""
        body = models.SaveWeightsRequest(model_id=self.id, path=name, seq_id=self.take_seq_id(), **fields)
        return save_weights(body=body)

    def save_for_sampler_call(self, name: str | None, **fields: Any) -> Call[models.UntypedAPIFuture]:
        """Return a call of save_weights_for_sampler; ``fields`` are further ones of SaveWeightsForSamplerRequest."""
        body = models.SaveWeightsForSamplerRequest(model_id=self.id, path=name, seq_id=self.take_seq_id(), **fields)
        return save_weights_for_sampler(body=body)

    def load_weights_call(self, path: str, *, optimizer: bool = False) -> Call[models.UntypedAPIFuture]:
        """Return a call of load_weights; the oldest wire versions leave open whether the optimizer is loaded."""
        has_choice = self._client.contract.has_field("LoadWeightsRequest", "optimizer")
        body = models.LoadWeightsRequest(
            model_id=self.id, path=path, optimizer=optimizer if has_choice else None, seq_id=self.take_seq_id()
        )
        return load_weights(body=body)

    # --- operations with their results --------------------------------------------------------------------------------

    async def forward_backward(
        self, data: Sequence[models.Datum], loss_fn: Any = CROSS_ENTROPY, config: dict[str, Any] | None = None
    ) -> models.ForwardBackwardOutput:
        """Compute a loss and add its gradients; return the output."""
        return _read_outputs(await self.futures.run(self.forward_backward_call(data, loss_fn, config)), len(data))

    async def forward(
        self, data: Sequence[models.Datum], loss_fn: Any = CROSS_ENTROPY, config: dict[str, Any] | None = None
    ) -> models.ForwardBackwardOutput:
        """Compute a loss without gradients; return the output."""
        return _read_outputs(await self.futures.run(self.forward_call(data, loss_fn, config)), len(data))

    async def logprobs(self, data: Sequence[models.Datum] | None = None) -> list[list[float]]:
        """Return the log probability of each target token of each datum, by forward."""
        output = await self.forward([make_datum()] if data is None else data)
        return logprobs_of(output)

    async def optim_step(self, **adam: Any) -> models.OptimStepResponse:
        """Update the weights; see :meth:`optim_step_call`."""
        result = await self.futures.run(self.optim_step_call(**adam))
        response: models.OptimStepResponse = result.value
        return response

    async def save(self, call: Call[models.UntypedAPIFuture]) -> Result:
        """Save weights, and note their path; an interruption of the run does not end the save."""
        return await self.saved_paths.complete(self._save(call))

    async def _save(self, call: Call[models.UntypedAPIFuture]) -> Result:
        result = await self.futures.run(call)
        self.saved_paths.append(result.value.path or "")
        return result

    async def save_weights(self, name: str, **fields: Any) -> str:
        """Save weights and optimizer, and return the path."""
        result = await self.save(self.save_weights_call(name, **fields))
        return result.value.path or ""

    async def save_for_sampler(self, name: str, **fields: Any) -> str:
        """Save weights to sample from under a name, and return the path."""
        result = await self.save(self.save_for_sampler_call(name, **fields))
        return result.value.path or ""

    async def load_weights(self, path: str, *, optimizer: bool) -> Result:
        """Load a checkpoint into this model."""
        return await self.futures.run(self.load_weights_call(path, optimizer=optimizer))

    async def get_info(self) -> models.GetInfoResponse:
        """Return the description of the model."""
        info, _ = await self._client.call(get_info(body=models.GetInfoRequest(model_id=self.id)))
        return info

    async def unload(self) -> QueuedWork:
        """Start to unload the model."""
        return await self.futures.submit(unload_model(body=models.UnloadModelRequest(model_id=self.id)))
