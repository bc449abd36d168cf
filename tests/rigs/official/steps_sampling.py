"""The sampling steps of the flow: clients, samples, stops, seeds and logprobs."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from tests.rigs.official.flow_state import LINES, Flow, Skipped, Step, expect

PROMPT = LINES[0]
TOKENS = 8


def _make_params(flow: Flow, **changes: Any) -> Any:
    return flow.types.SamplingParams(**{"max_tokens": TOKENS, "temperature": 1.0, "seed": 7, **changes})


def _sample(flow: Flow, sampler: Any, num_samples: int = 1, changes: Any = None, **options: Any) -> Any:
    """Sample after PROMPT and check what every sample must have."""
    prompt = flow.types.ModelInput.from_ints(PROMPT)
    params = _make_params(flow, **(changes or {}))
    response = flow.wait(sampler.sample(prompt, num_samples, params, **options))
    expect(len(response.sequences) == num_samples, f"{len(response.sequences)} sequences, not {num_samples}")
    for sequence in response.sequences:
        tokens, logprobs = list(sequence.tokens), list(sequence.logprobs or [])
        expect(0 < len(tokens) <= TOKENS, f"{len(tokens)} tokens, at most {TOKENS} were requested")
        expect(len(logprobs) == len(tokens), f"{len(logprobs)} logprobs for {len(tokens)} tokens")
        expect(bool(np.isfinite(logprobs).all()), f"logprobs are not all finite: {logprobs}")
        expect(str(sequence.stop_reason) in ("length", "stop"), f"stop_reason {sequence.stop_reason!r}")
    return response


def sampling_client_from_path(flow: Flow) -> str:
    sampler = flow.service.create_sampling_client(model_path=flow["sampler_path"])
    _sample(flow, sampler)
    flow.keep(sampler=sampler)
    return "sampled"


def save_weights_and_get_sampling_client(flow: Flow) -> str:
    sampler = flow["training"].save_weights_and_get_sampling_client()
    _sample(flow, sampler)
    return "sampled"


def sampling_client_from_base_model(flow: Flow) -> str:
    sampler = flow.service.create_sampling_client(base_model=flow.base_model)
    _sample(flow, sampler)
    return "sampled"


def sample_two(flow: Flow) -> str:
    first, second = _sample(flow, flow["sampler"], num_samples=2).sequences
    return f"{'different' if list(first.tokens) != list(second.tokens) else 'equal'} sequences"


def sample_seed(flow: Flow) -> str:
    first, second = (_sample(flow, flow["sampler"]).sequences[0] for _ in range(2))
    expect(list(first.tokens) == list(second.tokens), f"same seed: {first.tokens} and {second.tokens}")
    return "same seed, same tokens"


def sample_greedy(flow: Flow) -> str:
    greedy = {"temperature": 0.0}
    first, second = (_sample(flow, flow["sampler"], changes=greedy).sequences[0] for _ in range(2))
    expect(list(first.tokens) == list(second.tokens), f"temperature 0: {first.tokens} and {second.tokens}")
    flow.keep(greedy=list(first.tokens))
    return "temperature 0 repeats itself"


def sample_top_k_top_p(flow: Flow) -> str:
    greedy = flow["greedy"]
    tokens = list(_sample(flow, flow["sampler"], changes={"top_k": 1}).sequences[0].tokens)
    expect(tokens == greedy, f"top_k 1 gave {tokens}, temperature 0 {greedy}")
    _sample(flow, flow["sampler"], changes={"top_p": 0.5})
    return "top_k 1 is greedy, top_p 0.5 taken"


def sample_stop_tokens(flow: Flow) -> str:
    greedy = flow["greedy"]
    changes = {"temperature": 0.0, "stop": [greedy[2]]}
    sequence = _sample(flow, flow["sampler"], changes=changes).sequences[0]
    expect(str(sequence.stop_reason) == "stop", f"stop_reason {sequence.stop_reason!r} at a stop token")
    length = greedy.index(greedy[2])
    expect(len(sequence.tokens) in (length, length + 1), f"{len(sequence.tokens)} tokens, stop at {length}")
    return f"stopped, the stop token {'kept' if len(sequence.tokens) > length else 'dropped'}"


def sample_stop_string(flow: Flow) -> str:
    _sample(flow, flow["sampler"], changes={"stop": "no such text"})
    return "taken"


def sample_stop_strings(flow: Flow) -> str:
    _sample(flow, flow["sampler"], changes={"stop": ["no such text", "nor this"]})
    return "taken"


def sample_prompt_logprobs(flow: Flow) -> str:
    response = _sample(flow, flow["sampler"], include_prompt_logprobs=True)
    _check_prompt_logprobs(response.prompt_logprobs)
    return f"{len(response.prompt_logprobs)} values, the first is null"


def sample_topk_prompt_logprobs(flow: Flow) -> str:
    response = _sample(flow, flow["sampler"], include_prompt_logprobs=True, topk_prompt_logprobs=3)
    lists = response.topk_prompt_logprobs
    expect(lists is not None, "topk_prompt_logprobs is null")
    expect(len(lists) == len(PROMPT), f"{len(lists)} positions for a prompt of {len(PROMPT)}")
    for position, pairs in enumerate(lists[1:], 1):
        expect(pairs is not None and len(pairs) == 3, f"position {position}: {pairs}")
        expect(all(len(pair) == 2 for pair in pairs), f"position {position}: {pairs}")
    return f"first position {lists[0]}, then 3 pairs each"


def _list_parameters(flow: Flow) -> Any:
    # Of the class: what clients give at creation may be a stand-in that takes anything.
    return inspect.signature(flow.client.SamplingClient.sample).parameters


def sample_topk_logprobs(flow: Flow) -> str:
    if "topk_sample_logprobs" not in _list_parameters(flow):
        raise Skipped("SDK before 0.29.1 does not request them")
    sequence = _sample(flow, flow["sampler"], changes={"temperature": 0.0}, topk_sample_logprobs=3).sequences[0]
    lists = sequence.topk_logprobs
    expect(lists is not None and len(lists) == len(sequence.tokens), f"{lists} for {len(sequence.tokens)} tokens")
    for token, logprob, pairs in zip(sequence.tokens, sequence.logprobs, lists, strict=True):
        expect(len(pairs) == 3 and pairs[0][0] == token, f"the likeliest of {pairs} is not {token}")
        expect(abs(pairs[0][1] - logprob) < 1e-5, f"logprob {pairs[0][1]}, not {logprob}")
    return "3 pairs each, the likeliest is the one drawn"


def sample_target_prompt_logprobs(flow: Flow) -> str:
    """Check that the target logprobs of the prompt's own tokens equal the prompt's logprobs."""
    if "target_prompt_logprobs" not in _list_parameters(flow):
        raise Skipped("SDK before 0.30.4 does not request them")
    targets = flow.types.TensorData.from_numpy(np.asarray([[token, -1] for token in PROMPT[1:]], dtype=np.int64))
    response = _sample(flow, flow["sampler"], include_prompt_logprobs=True, target_prompt_logprobs=targets)
    logprobs = response.target_prompt_logprobs.to_numpy()
    expect(logprobs.shape == (len(PROMPT) - 1, 2), f"shape {logprobs.shape}")
    prompt_logprobs = np.asarray(response.prompt_logprobs[1:], dtype=float)
    difference = float(np.abs(logprobs[:, 0] - prompt_logprobs).max())
    expect(difference < 1e-5, f"they differ from prompt_logprobs by {difference}")
    return f"shape {logprobs.shape}, the same as prompt_logprobs"


def sample_last_prompt_logprobs(flow: Flow) -> str:
    if "prompt_logprobs_last_n" not in _list_parameters(flow):
        raise Skipped("SDK before 0.33.1 does not request the last ones only")
    response = _sample(flow, flow["sampler"], include_prompt_logprobs=True, prompt_logprobs_last_n=5)
    is_set = [value is not None for value in response.prompt_logprobs]
    expect(is_set == [False] * (len(PROMPT) - 5) + [True] * 5, f"given {is_set}")
    return "the last 5"


def sample_prompt_alternatives(flow: Flow) -> str:
    """Check that the logprobs of alternatives equal those of the same tokens as targets."""
    if "prompt_alt_tokens_k" not in _list_parameters(flow):
        raise Skipped("SDK before 0.31.0 does not request them")
    alternatives = _sample(flow, flow["sampler"], prompt_alt_tokens_k=3).prompt_alt_tokens
    tokens, logprobs = alternatives.tokens.to_numpy(), alternatives.logprobs.to_numpy()
    expect(tokens.shape == logprobs.shape == (len(PROMPT) - 1, 3), f"shapes {tokens.shape} and {logprobs.shape}")
    target_logprobs = _sample(
        flow, flow["sampler"], target_prompt_logprobs=alternatives.tokens
    ).target_prompt_logprobs.to_numpy()
    difference = float(np.abs(target_logprobs - logprobs).max())
    expect(difference < 1e-5, f"they differ from target logprobs by {difference}")
    return f"{tokens.shape[0]} places, 3 each"


def inflight_client(flow: Flow) -> str:
    """Check that clients of one model's inflight weights sample alike, before and after a step."""
    training = flow["training"]
    if "kind" not in inspect.signature(flow.client.TrainingClient.save_weights_and_get_sampling_client).parameters:
        raise Skipped("SDK before 0.38.0 has no inflight clients")
    prompt = flow.types.ModelInput.from_ints(PROMPT)

    def compute(sampler: Any) -> Any:
        return np.asarray(flow.wait(sampler.compute_logprobs(prompt))[1:], dtype=float)

    first_client = training.save_weights_and_get_sampling_client(kind="inflight")
    first_client = flow.wait(first_client) if hasattr(first_client, "result") else first_client
    first_logprobs = compute(first_client)
    flow.train(training)
    second_client = training.save_weights_and_get_sampling_client(kind="inflight")
    second_client = flow.wait(second_client) if hasattr(second_client, "result") else second_client
    second_logprobs = compute(second_client)
    expect(float(np.abs(second_logprobs - first_logprobs).max()) > 1e-6, "the step changed nothing")
    difference = float(np.abs(compute(first_client) - second_logprobs).max())
    expect(difference < 1e-5, f"the first client differs from the second by {difference}")
    return "the first client samples from the newest weights"


def compute_logprobs(flow: Flow) -> str:
    """Check that the prompt's logprobs of a sample equal those of forward with the same weights."""
    values = flow.wait(flow["sampler"].compute_logprobs(flow.types.ModelInput.from_ints(PROMPT)))
    _check_prompt_logprobs(values)
    difference = float(np.abs(np.asarray(values[1:], dtype=float) - flow["sampler_logprobs"]).max())
    expect(difference < 1e-3, f"logprobs differ from those of forward by {difference}")
    return f"within {difference:.1e} of forward"


def _check_prompt_logprobs(values: Any) -> None:
    expect(values is not None, "prompt logprobs are null")
    expect(len(values) == len(PROMPT), f"{len(values)} prompt logprobs for a prompt of {len(PROMPT)}")
    expect(values[0] is None, f"the first prompt logprob is {values[0]}, not null")
    expect(bool(np.isfinite(list(values[1:])).all()), f"prompt logprobs are not all finite: {values}")


def sample_many_at_once(flow: Flow) -> str:
    prompt = flow.types.ModelInput.from_ints(PROMPT)
    futures = [flow["sampler"].sample(prompt, 1, _make_params(flow, seed=i)) for i in range(32)]
    sequences = [flow.wait(future).sequences[0] for future in futures]
    expect(all(len(sequence.tokens) > 0 for sequence in sequences), "an empty sample")
    return f"{len(sequences)} samples"


def get_base_model(flow: Flow) -> str:
    name = flow["sampler"].get_base_model()
    expect(name == flow.base_model, f"{name}, not {flow.base_model}")
    return name


STEPS: list[Step] = [
    sampling_client_from_path,
    save_weights_and_get_sampling_client,
    sampling_client_from_base_model,
    sample_two,
    sample_seed,
    sample_greedy,
    sample_top_k_top_p,
    sample_stop_tokens,
    sample_stop_string,
    sample_stop_strings,
    sample_prompt_logprobs,
    sample_topk_prompt_logprobs,
    sample_topk_logprobs,
    sample_target_prompt_logprobs,
    sample_last_prompt_logprobs,
    sample_prompt_alternatives,
    inflight_client,
    compute_logprobs,
    sample_many_at_once,
    get_base_model,
]
