"""The training steps of the flow: models, losses, optimizer steps, saving and loading."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from tests.rigs.official.flow_state import (
    LINES,
    RANK,
    SEED,
    Flow,
    Skipped,
    Step,
    expect,
    expect_refused,
    logprobs_of,
    near,
)


def get_server_capabilities(flow: Flow) -> str:
    names = [model.model_name for model in flow.service.get_server_capabilities().supported_models]
    expect(bool(names), "no supported model")
    flow.base_model = flow.base_model or names[0]
    expect(flow.base_model in names, f"{flow.base_model} is not among {names}")
    return f"{len(names)} models, {flow.base_model} among them"


def create_lora_training_client(flow: Flow) -> str:
    training = flow.service.create_lora_training_client(flow.base_model, rank=RANK, seed=SEED)
    flow.keep(training=training)
    return type(training).__name__


def get_info(flow: Flow) -> str:
    info = flow["training"].get_info()
    expect(bool(info.model_id), "no model_id")
    flow.keep(model_id=info.model_id)
    expect(info.lora_rank in (None, RANK), f"lora_rank {info.lora_rank}, expected {RANK}")
    return f"is_lora {info.is_lora}, lora_rank {info.lora_rank}, model_name {info.model_data.model_name}"


def forward(flow: Flow) -> str:
    output = flow.wait(flow["training"].forward(flow.supervised(), "cross_entropy"))
    arrays = logprobs_of(output, [len(line) - 1 for line in LINES])
    flow.keep(first_loss=-float(np.mean(np.concatenate(arrays))), logprobs=arrays)
    return f"loss {flow['first_loss']:.4f}, metrics {sorted(output.metrics)}"


def forward_backward(flow: Flow) -> str:
    output = flow.wait(flow["training"].forward_backward(flow.supervised(), "cross_entropy"))
    arrays = logprobs_of(output, [len(line) - 1 for line in LINES])
    difference = max(float(np.abs(a - b).max()) for a, b in zip(arrays, flow["logprobs"], strict=True))
    expect(difference < 1e-4, f"logprobs differ from those of forward by {difference}")
    if "loss:sum" in output.metrics:
        total = -float(sum(array.sum() for array in arrays))
        near(output.metrics["loss:sum"], total, 1e-3 * total, "metric loss:sum")
    return f"metrics {sorted(output.metrics)}"


def optim_step(flow: Flow) -> str:
    response = flow.wait(flow["training"].optim_step(flow.types.AdamParams(learning_rate=5e-3)))
    loss = flow.loss(flow["training"])
    expect(loss < flow["first_loss"], f"loss {loss} after a step, {flow['first_loss']} before")
    return f"loss {flow['first_loss']:.4f} -> {loss:.4f}, metrics {sorted(response.metrics or {})}"


def loss_falls(flow: Flow) -> str:
    """Submit five steps at once, so that their order matters."""
    loss_before = flow.loss(flow["training"])
    flow.train(flow["training"], steps=5)
    loss_after = flow.loss(flow["training"])
    expect(loss_after < loss_before, f"loss {loss_after} after five steps, {loss_before} before")
    return f"loss {loss_before:.4f} -> {loss_after:.4f}"


def chunked_prompt(flow: Flow) -> str:
    """Check that a model input of three chunks equals one chunk."""
    line = LINES[0]
    single_chunk = flow.datum(line, weights=np.ones(len(line) - 1, dtype=np.float32))
    chunks = [flow.types.EncodedTextChunk(tokens=line[a:b]) for a, b in ((0, 5), (5, 6), (6, len(line) - 1))]
    three_chunks = flow.types.Datum(
        model_input=flow.types.ModelInput(chunks=chunks), loss_fn_inputs=single_chunk.loss_fn_inputs
    )
    output = flow.wait(flow["training"].forward([single_chunk, three_chunks], "cross_entropy"))
    single_logprobs, chunked_logprobs = logprobs_of(output, [len(line) - 1] * 2)
    difference = float(np.abs(single_logprobs - chunked_logprobs).max())
    expect(difference < 1e-4, f"logprobs of one chunk and of three differ by {difference}")
    return "same logprobs"


def many_datums(flow: Flow) -> str:
    """Send more datums than one request holds, of different lengths; outputs arrive in order."""
    lines = [LINES[0][: 3 + i % 20] for i in range(150)]
    output = flow.wait(flow["training"].forward_backward(flow.supervised(lines), "cross_entropy"))
    arrays = logprobs_of(output, [len(line) - 1 for line in lines])
    flow.wait(flow["training"].optim_step(flow.types.AdamParams(learning_rate=0.0)))
    return f"{len(arrays)} outputs in order"


def _policy_loss(flow: Flow, loss_fn: str, config: dict[str, float] | None = None) -> str:
    """Train on a loss of reinforcement learning on the policy itself: every ratio is 1."""
    training = flow["training"]
    lengths = [len(line) - 1 for line in LINES]
    current_logprobs = logprobs_of(flow.wait(training.forward(flow.supervised(), "cross_entropy")), lengths)
    advantages = [np.linspace(-1, 2, length, dtype=np.float32) for length in lengths]
    datums = [
        flow.datum(line, logprobs=np.asarray(old_logprobs, dtype=np.float32), advantages=advantage)
        for line, old_logprobs, advantage in zip(LINES, current_logprobs, advantages, strict=True)
    ]
    output = flow.wait(training.forward_backward(datums, loss_fn, config))
    logprobs_of(output, lengths)
    flow.wait(training.optim_step(flow.types.AdamParams(learning_rate=1e-4)))
    total = output.metrics.get("loss:sum")
    if total is not None and loss_fn in ("importance_sampling", "ppo"):
        near(total, -float(sum(a.sum() for a in advantages)), 0.1, f"metric loss:sum of {loss_fn}")
    return f"loss:sum {total}"


def importance_sampling(flow: Flow) -> str:
    return _policy_loss(flow, "importance_sampling")


def ppo(flow: Flow) -> str:
    return _policy_loss(flow, "ppo", {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2})


def cispo(flow: Flow) -> str:
    return _policy_loss(flow, "cispo")


def dro(flow: Flow) -> str:
    return _policy_loss(flow, "dro", {"beta": 0.05})


def save_state(flow: Flow) -> str:
    loss = flow.loss(flow["training"])
    path = flow.wait(flow["training"].save_state("flow-state")).path
    expect(path.startswith("tinker://"), f"path {path}")
    flow.keep(state_path=path, state_loss=loss)
    return path


def load_state(flow: Flow) -> str:
    training = flow["training"]
    path, loss = flow["state_path"], flow["state_loss"]
    flow.train(training)
    flow.keep(continued_loss=flow.loss(training))
    flow.wait(training.load_state(path))
    near(flow.loss(training), loss, 1e-4, "loss after loading")
    return f"loss {flow['continued_loss']:.4f} -> {loss:.4f}"


def load_state_with_optimizer(flow: Flow) -> str:
    training = flow["training"]
    flow.wait(training.load_state_with_optimizer(flow["state_path"]))
    near(flow.loss(training), flow["state_loss"], 1e-4, "loss after loading")
    flow.train(training)
    near(flow.loss(training), flow["continued_loss"], 1e-4, "loss one step on, had training never stopped")
    return "a step after loading equals the step without"


def training_client_from_state(flow: Flow) -> str:
    training = flow.service.create_training_client_from_state(flow["state_path"])
    near(flow.loss(training), flow["state_loss"], 1e-4, "loss of the new model")
    return "same loss"


def training_client_from_state_with_optimizer(flow: Flow) -> str:
    training = flow.service.create_training_client_from_state_with_optimizer(flow["state_path"])
    flow.train(training)
    near(flow.loss(training), flow["continued_loss"], 1e-4, "loss one step on")
    return "a step after loading equals the step without"


def save_weights_for_sampler(flow: Flow) -> str:
    training = flow["training"]
    output = flow.wait(training.forward(flow.supervised(LINES[:1]), "cross_entropy"))
    flow.keep(sampler_logprobs=logprobs_of(output, [len(LINES[0]) - 1])[0])
    path = flow.wait(training.save_weights_for_sampler("flow-sampler")).path
    expect(bool(path) and path.startswith("tinker://"), f"path {path}")
    flow.keep(sampler_path=path)
    return path


def unknown_base_model_is_refused(flow: Flow) -> str:
    """Expect an error at the first use, because some clients create the model in the background."""

    def use() -> str:
        training = flow.service.create_lora_training_client("no/such-model", rank=RANK)
        return f"a model on {training.get_info().model_data.model_name}"

    return expect_refused("an unknown base model", use)


def unknown_state_is_refused(flow: Flow) -> str:
    path = "tinker://no-such-model/weights/no-such-state"
    return expect_refused("an unknown path", lambda: flow.wait(flow["training"].load_state(path)))


def token_outside_vocabulary_is_refused(flow: Flow) -> str:
    """Expect an error of that request only."""
    datum = flow.datum([70, 10_000_000, 71], weights=np.ones(2, dtype=np.float32))
    error = expect_refused(
        "a token outside the vocabulary",
        lambda: flow.wait(flow["training"].forward([datum], "cross_entropy")),
    )
    flow.loss(flow["training"])
    return error


def forward_backward_custom(flow: Flow) -> str:
    """Check that a custom loss in numpy trains like cross_entropy."""
    training = flow["training"]
    if "arrays" not in inspect.signature(flow.client.TrainingClient.forward_backward_custom).parameters:
        raise Skipped("the official SDK takes losses in torch only")

    def negative(datums: Any, logprobs: Any) -> Any:
        total = -float(sum(array.sum() for array in logprobs))
        return total, {"own:max": total}, [-np.ones_like(array) for array in logprobs]

    loss_before = flow.loss(training)
    output = flow.wait(training.forward_backward_custom(flow.supervised(), negative, arrays="numpy"))
    mean_loss = output.metrics["loss:sum"] / sum(len(line) - 1 for line in LINES)
    near(mean_loss, loss_before, 1e-3, "loss of one's own")
    near(output.metrics["own:max"], output.metrics["loss:sum"], 1e-3, "metric of one's own")
    flow.wait(training.optim_step(flow.types.AdamParams(learning_rate=5e-3)))
    loss_after = flow.loss(training)
    expect(loss_after < loss_before, f"loss {loss_after} after a step, {loss_before} before")
    return f"loss {loss_before:.4f} -> {loss_after:.4f}"


def unload_model(flow: Flow) -> str:
    """Check that an unloaded model cannot be trained."""
    training = flow.service.create_lora_training_client(flow.base_model, rank=RANK, seed=SEED)
    if not hasattr(training, "unload_model"):
        raise Skipped("the official SDK has no method for it")
    flow.loss(training)
    flow.wait(training.unload_model())
    return expect_refused("training of an unloaded model", lambda: flow.loss(training))


STEPS: list[Step] = [
    get_server_capabilities,
    create_lora_training_client,
    get_info,
    forward,
    forward_backward,
    optim_step,
    loss_falls,
    chunked_prompt,
    many_datums,
    importance_sampling,
    ppo,
    cispo,
    dro,
    save_state,
    load_state,
    load_state_with_optimizer,
    training_client_from_state,
    training_client_from_state_with_optimizer,
    save_weights_for_sampler,
    forward_backward_custom,
    unload_model,
    unknown_base_model_is_refused,
    unknown_state_is_refused,
]


def close(flow: Flow) -> str:
    """Close the client."""
    if not hasattr(flow.service, "close"):
        raise Skipped("SDK before 0.27.2 does not close")
    closing = flow.service.close("success")
    if hasattr(closing, "result"):
        flow.wait(closing)
    return "closed"


# A server may be of no more use after these.
LAST_STEPS: list[Step] = [token_outside_vocabulary_is_refused, close]
