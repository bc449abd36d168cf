"""Warnings about methods that the official SDK is going to drop, for programs that run on the drop-in.

This package keeps the methods, so its own users get no warning. Programs written for the official SDK get the same
FutureWarning as there.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from .paths import API_VERSION

FROM_STATE = "ServiceClient.create_training_client_from_state"
REPLACED: Mapping[str, Mapping[str, str]] = {
    "ServiceClient": {
        "create_lora_training_client_async": "ServiceClient.create_lora_training_client()",
        "create_rest_client": "tinker.RestClient()",
        "create_sampling_client_async": "ServiceClient.create_sampling_client()",
        "create_training_client_from_state_async": f"{FROM_STATE}()",
        "create_training_client_from_state_with_optimizer_async": f"{FROM_STATE}_with_optimizer()",
        "get_server_capabilities": "tinker.RestClient().get_server_capabilities()",
        "get_server_capabilities_async": "tinker.RestClient().get_server_capabilities()",
    },
    "TrainingClient": {
        "create_sampling_client_async": "TrainingClient.create_sampling_client()",
        "forward_async": "TrainingClient.forward()",
        "forward_backward_async": "TrainingClient.forward_backward()",
        "forward_backward_custom_async": "TrainingClient.forward_backward_custom()",
        "get_info_async": "TrainingClient.get_info()",
        "load_state": f"{FROM_STATE}()",
        "load_state_async": f"{FROM_STATE}()",
        "load_state_with_optimizer": f"{FROM_STATE}_with_optimizer()",
        "load_state_with_optimizer_async": f"{FROM_STATE}_with_optimizer()",
        "optim_step_async": "TrainingClient.optim_step()",
        "save_state_async": "TrainingClient.save_state()",
        "save_weights_and_get_sampling_client_async": "TrainingClient.save_weights_and_get_sampling_client()",
        "save_weights_external_async": "TrainingClient.save_weights_external()",
        "save_weights_for_sampler_async": "TrainingClient.save_weights_for_sampler()",
    },
    "SamplingClient": {
        "compute_logprobs_async": "SamplingClient.compute_logprobs()",
        "get_base_model_async": "SamplingClient.get_base_model()",
        "sample_async": "SamplingClient.sample()",
    },
    "RestClient": {
        "assign_session_project_async": "RestClient.assign_session_project()",
        "copy_weights_async": "RestClient.copy_weights()",
        "delete_checkpoint_async": "RestClient.delete_checkpoint()",
        "delete_checkpoint_from_tinker_path_async": "RestClient.delete_checkpoint_from_tinker_path()",
        "export_session_trace_async": "RestClient.export_session_trace()",
        "get_audit_log": "AdminClient.get_audit_log()",
        "get_audit_log_async": "AdminClient.get_audit_log()",
        "get_billing_usage": "AdminClient.get_billing_usage()",
        "get_billing_usage_async": "AdminClient.get_billing_usage()",
        "get_current_checkpoint_storage_usage": "AdminClient.get_current_checkpoint_storage_usage()",
        "get_current_checkpoint_storage_usage_async": "AdminClient.get_current_checkpoint_storage_usage()",
        "get_external_weights_urls_async": "RestClient.get_external_weights_urls()",
        "get_sampler_async": "RestClient.get_sampler()",
        "get_session_async": "RestClient.get_session()",
        "get_training_run_async": "RestClient.get_training_run()",
        "get_training_run_by_tinker_path_async": "RestClient.get_training_run_by_tinker_path()",
        "list_checkpoints_async": "RestClient.list_checkpoints()",
        "list_sessions_async": "RestClient.list_sessions()",
        "list_training_runs_async": "RestClient.list_training_runs()",
        "list_user_checkpoints_async": "RestClient.list_user_checkpoints()",
        "publish_checkpoint_from_tinker_path_async": "RestClient.publish_checkpoint_from_tinker_path()",
        "set_checkpoint_ttl_from_tinker_path_async": "RestClient.set_checkpoint_ttl_from_tinker_path()",
        "unpublish_checkpoint_from_tinker_path_async": "RestClient.unpublish_checkpoint_from_tinker_path()",
    },
    "AdminClient": {
        "get_audit_log_async": "AdminClient.get_audit_log()",
        "get_billing_usage_async": "AdminClient.get_billing_usage()",
        "get_current_checkpoint_storage_usage_async": "AdminClient.get_current_checkpoint_storage_usage()",
    },
}
"""The call that takes the place of each deprecated method, by class and method."""
EXPERIMENTAL: Mapping[str, tuple[str, ...]] = {"RestClient": ("search_sessions",)}
"""Methods that the official SDK calls experimental."""


def warn_of_deprecated_methods() -> None:
    """Make the deprecated methods of the clients warn; a second call changes nothing."""
    import tinkerwire  # noqa: PLC0415  (the drop-in is in place before tinkerwire is imported)

    for client, methods in REPLACED.items():
        for name, replacement in methods.items():
            text = f"{client}.{name}() is deprecated since tinker {API_VERSION}; use {replacement} instead"
            _decorate(getattr(tinkerwire, client), name, text, FutureWarning)
    for client, names in EXPERIMENTAL.items():
        for name in names:
            text = f"{client}.{name}() is experimental: any release may change or drop it"
            _decorate(getattr(tinkerwire, client), name, text, tinkerwire.ExperimentalWarning)


def _decorate(cls: type, name: str, text: str, category: type[Warning]) -> None:
    method = getattr(cls, name)
    if not hasattr(method, "__deprecated__"):
        setattr(cls, name, _warning(method, text, category))


def _warning(method: Callable[..., Any], text: str, category: type[Warning]) -> Callable[..., Any]:
    @functools.wraps(method)
    def warn_and_call(*args: Any, **kwargs: Any) -> Any:
        # Methods of this package call each other, and only the user's own calls are worth a warning.
        if sys._getframe(1).f_globals.get("__name__", "").partition(".")[0] != "tinkerwire":
            warnings.warn(text, category, stacklevel=2)
        return method(*args, **kwargs)

    decorated: Any = warn_and_call
    decorated.__deprecated__ = text
    if inspect.iscoroutinefunction(method):
        if sys.version_info >= (3, 12):
            decorated = inspect.markcoroutinefunction(decorated)
        else:
            decorated._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]
    wrapper: Callable[..., Any] = decorated
    return wrapper
