"""One case of the fuzz test: a public operation, its arguments and mutated responses, all from one seed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import traceback
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import attrs

import tinkerwire as tw
from rigs.fuzz.mutations import draw_unexpected_argument
from rigs.fuzz.server import VARIANTS, MutatingServer

ALLOWED = (
    tw.TinkerError,
    ValueError,
    TypeError,
    TimeoutError,
    asyncio.TimeoutError,
    concurrent.futures.TimeoutError,
    concurrent.futures.CancelledError,
    asyncio.CancelledError,
)
"""Exceptions that a public call may raise."""
MODEL = "tinkerwire/byte-nano"
LIMIT_S = 2.0
"""The deadline of each operation."""
HANG_S = 60.0
"""Seconds that a case of several operations may take on a shared machine."""
POLICY = tw.RetryConfig(
    progress_timeout=LIMIT_S,
    retry_delay_base=0.001,
    retry_delay_max=0.01,
    retry_after_max=0.01,
    max_attempts=3,
    max_elapsed=1.0,
)
PATH = "tinker://run/weights/0001"


@attrs.frozen
class Problem:
    """The rule that a case broke."""

    seed: int
    text: str


def run_case(server: MutatingServer, seed: int) -> Problem | None:
    """Run one case; return its problem, or None."""
    problems: list[Problem] = []

    def work() -> None:
        try:
            _perform(server, seed)
        except ALLOWED:
            pass
        except BaseException:
            problems.append(Problem(seed, traceback.format_exc(limit=-12)))

    thread = threading.Thread(target=work, daemon=True, name=f"case-{seed}")
    thread.start()
    thread.join(HANG_S)
    if thread.is_alive():
        problems.append(Problem(seed, f"did not end within {HANG_S:g} s"))
    return problems[0] if problems else None


def _perform(server: MutatingServer, seed: int) -> None:
    rng = Random(seed)
    name, variant = rng.choice(sorted(OPERATIONS)), rng.choice(sorted(VARIANTS))
    # Half of the cases mutate responses, a quarter the arguments, a quarter both.
    kind = rng.choice(("responses", "responses", "arguments", "both"))
    segment = "plain" if kind == "arguments" else str(seed)
    options: dict[str, Any] = {"wire_version": rng.choice((None, VARIANTS[variant][0]))}
    client = tw.ServiceClient(
        base_url=f"{server.url}/{segment}/{variant}", api_key="tml-fuzz-key", retry=POLICY, **options
    )
    try:
        make, arguments = OPERATIONS[name]
        values = dict(arguments)
        if kind != "responses":
            for key in rng.sample(sorted(values), k=min(len(values), rng.choice((0, 1, 1, 2)))):
                values[key] = draw_unexpected_argument(rng)
        _finish(make(client, values, rng))
    finally:
        client.close().result(HANG_S)


def _finish(value: Any) -> None:
    """Wait for a result, and read all of it."""
    if isinstance(value, tw.APIFuture):
        value = value.result()
    repr(value)


def _make_datum(rng: Random, values: Mapping[str, Any]) -> tw.Datum:
    return tw.Datum(
        model_input=tw.ModelInput.from_ints(values.get("tokens", [1, 2, 3])),
        loss_fn_inputs={
            "target_tokens": values.get("target_tokens", [2, 3, 4]),
            "weights": values.get("weights", [1.0, 1.0, 1.0]),
        },
    )


def _with_training_client(operation: Callable[[tw.TrainingClient, dict[str, Any], Random], Any]) -> Callable[..., Any]:
    def make(client: tw.ServiceClient, values: dict[str, Any], rng: Random) -> Any:
        return operation(client.create_lora_training_client(MODEL, rank=2), values, rng)

    return make


def _call_batch(method: str) -> Callable[..., Any]:
    def make(training: tw.TrainingClient, values: dict[str, Any], rng: Random) -> Any:
        loss_fn = values.pop("loss_fn")
        config = values.pop("loss_fn_config")
        return getattr(training, method)([_make_datum(rng, values)] * 2, loss_fn, config)

    return _with_training_client(make)


def _call_custom_loss(training: tw.TrainingClient, values: dict[str, Any], rng: Random) -> Any:
    import numpy as np  # noqa: PLC0415

    def loss(datums: Any, logprobs: Any) -> Any:
        return (
            float(-sum(np.sum(logprob) for logprob in logprobs)),
            {"x": 1.0},
            [-np.ones_like(logprob) for logprob in logprobs],
        )

    return training.forward_backward_custom([_make_datum(rng, values)], loss, arrays="numpy")


def _sample(client: tw.ServiceClient, values: dict[str, Any], rng: Random) -> Any:
    tokens = values.pop("tokens")
    params = {name: values.pop(name) for name in ("max_tokens", "temperature", "top_p", "top_k", "seed", "stop")}
    sampling = client.create_sampling_client(base_model=MODEL)
    return sampling.sample(tw.ModelInput.from_ints(tokens), sampling_params=tw.SamplingParams(**params), **values)


def _compute_logprobs(client: tw.ServiceClient, values: dict[str, Any], rng: Random) -> Any:
    sampling = client.create_sampling_client(base_model=MODEL)
    return sampling.compute_logprobs(tw.ModelInput.from_ints(values["tokens"]))


def _call_sampler(method: str) -> Callable[..., Any]:
    return lambda client, values, rng: getattr(client.create_sampling_client(base_model=MODEL), method)()


def _call_rest(method: str) -> Callable[..., Any]:
    return lambda client, values, rng: getattr(tw.RestClient(client._connection), method)(**values)


def _call_service(method: str) -> Callable[..., Any]:
    def make(client: tw.ServiceClient, values: dict[str, Any], rng: Random) -> Any:
        result = getattr(client, method)(**values)
        if isinstance(result, tw.TrainingClient | tw.SamplingClient):
            return repr(result.result())
        return result

    return make


def _call_training(method: str) -> Callable[..., Any]:
    return _with_training_client(lambda training, values, rng: getattr(training, method)(**values))


def _call_optim_step(training: tw.TrainingClient, values: dict[str, Any], rng: Random) -> Any:
    return training.optim_step(tw.AdamParams(**values))


def _sample_saved_weights(training: tw.TrainingClient, values: dict[str, Any], rng: Random) -> Any:
    sampling = training.save_weights_and_get_sampling_client(**values)
    return sampling.sample(tw.ModelInput.from_ints([1]), 1, tw.SamplingParams(max_tokens=2))


_BATCH = {
    "tokens": [1, 2, 3],
    "target_tokens": [2, 3, 4],
    "weights": [1.0, 0.5, 0.0],
    "loss_fn": "cross_entropy",
    "loss_fn_config": None,
}
_RUN = {"training_run_id": "run", "checkpoint_id": "weights/0001"}

OPERATIONS: Mapping[str, tuple[Callable[[tw.ServiceClient, dict[str, Any], Random], Any], Mapping[str, Any]]] = {
    "forward": (_call_batch("forward"), _BATCH),
    "forward_backward": (_call_batch("forward_backward"), _BATCH),
    "forward_backward_custom": (
        _with_training_client(_call_custom_loss),
        {name: _BATCH[name] for name in ("tokens", "target_tokens", "weights")},
    ),
    "optim_step": (
        _with_training_client(_call_optim_step),
        {"learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8},
    ),
    "save_state": (
        _call_training("save_state"),
        {"name": "a", "ttl_seconds": 60, "overwrite": True, "user_metadata": {"a": "b"}},
    ),
    "save_weights_for_sampler": (_call_training("save_weights_for_sampler"), {"name": "a", "ttl_seconds": 60}),
    "save_weights_external": (_call_training("save_weights_external"), {"name": "a", "ttl_seconds": 60}),
    "save_weights_and_get_sampling_client": (_with_training_client(_sample_saved_weights), {"name": None}),
    "load_state": (_call_training("load_state"), {"path": PATH}),
    "load_state_with_optimizer": (_call_training("load_state_with_optimizer"), {"path": PATH}),
    "get_info": (_call_training("get_info"), {}),
    "unload_model": (_call_training("unload_model"), {}),
    "training_console": (_call_training("get_console_url"), {}),
    "create_lora_training_client": (
        _call_service("create_lora_training_client"),
        {"base_model": MODEL, "rank": 2, "seed": 1, "user_metadata": {"a": "b"}},
    ),
    "create_training_client_from_state": (_call_service("create_training_client_from_state"), {"path": PATH}),
    "create_training_client_from_state_with_optimizer": (
        _call_service("create_training_client_from_state_with_optimizer"),
        {"path": PATH},
    ),
    "create_sampling_client": (_call_service("create_sampling_client"), {"base_model": MODEL, "model_path": None}),
    "get_server_capabilities": (_call_service("get_server_capabilities"), {}),
    "console": (_call_service("get_console_url"), {}),
    "sample": (
        _sample,
        {
            "tokens": [1, 2, 3],
            "num_samples": 2,
            "max_tokens": 3,
            "temperature": 1.0,
            "top_p": 1.0,
            "top_k": -1,
            "seed": 1,
            "stop": None,
            "include_prompt_logprobs": True,
            "topk_prompt_logprobs": 2,
        },
    ),
    "compute_logprobs": (_compute_logprobs, {"tokens": [1, 2, 3]}),
    "get_base_model": (_call_sampler("get_base_model"), {}),
    "get_sampler_handle": (_call_sampler("get_sampler_handle"), {}),
    **{
        name: (_call_rest(name), arguments)
        for name, arguments in {
            "copy_weights": {"path": PATH, "destination_project_id": "p", "ttl_seconds": 5},
            "delete_checkpoint": _RUN,
            "delete_checkpoint_from_tinker_path": {"tinker_path": PATH},
            "download_checkpoint_archive": _RUN,
            "export_session_trace": {"session_id": "s"},
            "get_audit_log": {"event_type": "all", "day": None},
            "get_billing_usage": {"starting_on": "2026-01-01T00:00:00Z", "ending_before": "2026-02-01T00:00:00Z"},
            "get_checkpoint_archive_url": _RUN,
            "get_current_checkpoint_storage_usage": {"project_id": "p"},
            "get_external_weights_urls": {"tinker_path": "tinker://run/external_weights/0001"},
            "get_sampler": {"sampler_id": "s"},
            "get_session": {"session_id": "s", "access_scope": "owned"},
            "get_training_run": {"training_run_id": "run", "access_scope": "owned"},
            "get_training_run_by_tinker_path": {"tinker_path": PATH, "access_scope": "owned"},
            "get_weights_info_by_tinker_path": {"tinker_path": PATH},
            "list_checkpoints": {"training_run_id": "run"},
            "list_sessions": {"limit": 20, "offset": 0},
            "list_training_runs": {"limit": 20, "offset": 0, "access_scope": "owned"},
            "list_user_checkpoints": {"limit": 20, "offset": 0},
            "publish_checkpoint_from_tinker_path": {"tinker_path": PATH},
            "set_checkpoint_ttl_from_tinker_path": {"tinker_path": PATH, "ttl_seconds": 5},
            "whoami": {},
        }.items()
    },
}
"""The public operations, each with arguments that fit."""
