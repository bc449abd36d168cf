"""Modules of the official SDK, and the modules here that replace them."""

from __future__ import annotations

from collections.abc import Mapping

from tinkerwire_generated.availability import NEWEST

API_VERSION = NEWEST
"""Release of the official SDK whose names exist here; the value of ``tinker.__version__``."""

PATHS: Mapping[str, str] = {
    "tinker": "tinkerwire",
    "tinker._compat": "tinkerwire.dropin.compat",
    "tinker._exceptions": "tinkerwire",
    "tinker._response": "tinkerwire._transport.httpx_types",
    "tinker._version": "tinkerwire.version",
    "tinker.auth": "tinkerwire.auth",
    "tinker.lib": "tinkerwire",
    "tinker.lib.api_future_impl": "tinkerwire._futures.future",
    "tinker.lib.experimental": "tinkerwire.experimental",
    "tinker.lib.public_interfaces": "tinkerwire",
    "tinker.lib.public_interfaces.admin_client": "tinkerwire",
    "tinker.lib.public_interfaces.api_future": "tinkerwire._futures.future",
    "tinker.lib.public_interfaces.backcompat_sampling_client_future": "tinkerwire",
    "tinker.lib.public_interfaces.backcompat_training_client_future": "tinkerwire",
    "tinker.lib.public_interfaces.custom_loss": "tinkerwire",
    "tinker.lib.public_interfaces.rest_client": "tinkerwire._rest.client",
    "tinker.lib.public_interfaces.sampling_client": "tinkerwire._sampling.client",
    "tinker.lib.public_interfaces.service_client": "tinkerwire._service",
    "tinker.lib.public_interfaces.training_client": "tinkerwire._training.client",
    "tinker.lib.retry_handler": "tinkerwire._connection.retry",
    "tinker.lib.telemetry": "tinkerwire._telemetry.reporter",
    "tinker.proto": "tinkerwire.dropin.proto",
    "tinker.proto.request_conv": "tinkerwire.dropin.proto.request_conv",
    "tinker.proto.response_conv": "tinkerwire.dropin.proto.response_conv",
    "tinker.proto.tinker_public_pb2": "tinkerwire.dropin.proto.tinker_public_pb2",
    "tinker.types": "tinkerwire.types",
    "tinker.types._pydantic_types": "tinkerwire.types",
    "tinker.types.optimizer": "tinkerwire.types",
    "tinker.types.search_owner": "tinkerwire.types",
    "tinker.types.session_status": "tinkerwire.types",
    "tinker.types.session_status_query": "tinkerwire.types",
    "tinker.types.shared": "tinkerwire.types",
    "tinker.types.topk_prompt_logprobs": "tinkerwire.types",
}
"""Modules that are not called after the one type in them; ``tinker.types.tensor_data`` and its like are not listed."""

ADDED: Mapping[str, Mapping[str, str]] = {
    # Its name before 0.29.1, which pickles of results refer to.
    "tinker.types.topk_prompt_logprobs": {"TopkPromptLogprobs": "tinkerwire.types:TopkLogprobs"},
    "tinker.lib.public_interfaces": {
        "AwaitableConcurrentFuture": "tinkerwire._futures.future:AwaitableConcurrentFuture"
    },
    "tinker.lib.public_interfaces.training_client": {
        "CustomLossFnV1": "tinkerwire._training.losses.client_loss:CustomLossFn"
    },
}
"""Names of an official module that are elsewhere here, as module and name."""

_INSIDE = "it is the inside of the official SDK, which works otherwise here"
_LOW_LEVEL = "it is the low-level client of the official SDK; tinkerwire_generated.api has the calls of the wire"
_CREDENTIALS = "it is the credential storage of the official SDK; use the functions of tinker.auth"
ABSENT: Mapping[str, str] = {
    "tinker._base_client": _LOW_LEVEL,
    "tinker._client": _LOW_LEVEL,
    "tinker._constants": _INSIDE,
    "tinker._files": _LOW_LEVEL,
    "tinker._models": "models are not pydantic models here, though they have the methods of those; see tinker.types",
    "tinker._qs": _LOW_LEVEL,
    "tinker._resource": _LOW_LEVEL,
    "tinker._streaming": _LOW_LEVEL,
    "tinker._types": _LOW_LEVEL,
    "tinker._utils": _INSIDE,
    "tinker.cli": "it is the command line of the official SDK; that of this package is `tinkerwire`",
    "tinker.lib._auth_token_provider": _CREDENTIALS,
    "tinker.lib._jwt_auth": _CREDENTIALS,
    "tinker.lib._pydantic_conv": "tinkerwire_base.conversion reads and writes models here, without pydantic",
    "tinker.lib.async_tinker_provider": _INSIDE,
    "tinker.lib.backcompat_concurrent_future": _INSIDE,
    "tinker.lib.base_url": _INSIDE,
    "tinker.lib.chunked_fwdbwd_helpers": _INSIDE,
    "tinker.lib.client_connection_pool_type": _INSIDE,
    "tinker.lib.console_urls": "the clients have get_console_url",
    "tinker.lib.credentials": _CREDENTIALS,
    "tinker.lib.internal_client_holder": _INSIDE,
    "tinker.lib.public_interfaces.backcompat_client_future": _INSIDE,
    "tinker.lib.public_interfaces.rest_client_common": _INSIDE,
    "tinker.lib.queue_state_logger": "ServiceClient(on_wait=) is called with the state of the queue",
    "tinker.lib.retryable_exception": "RetryConfig(retry_if=) decides which errors are retried",
    "tinker.lib.sdk_method": _INSIDE,
    "tinker.lib.session_futures_poller": _INSIDE,
    "tinker.lib.sidecar": "samples are not drawn in a process of their own here",
    "tinker.lib.sync_only": _INSIDE,
    "tinker.lib.telemetry_provider": _INSIDE,
    "tinker.resources": _LOW_LEVEL,
    "tinker.types._tensor_container": _INSIDE,
    "tinker.types._torch_utils": _INSIDE,
    "tinker.types.billing_usage_request": "get_billing_usage takes its values as arguments",
    "tinker.types.current_checkpoint_storage_usage_request": "get_current_checkpoint_storage_usage takes its values",
}
"""Modules of official releases, and what is below them, that are not here, with the reason and the way out."""

TYPE_FOLDERS = ("tinker.types", "tinker.types._pydantic_types", "tinker.types.shared")
"""Packages whose modules have the names of their types: ``tensor_data`` of TensorData."""


def find_target(path: str) -> str | None:
    """Return the module here that replaces an official one, or None."""
    folder, _, name = path.rpartition(".")
    if path not in PATHS and folder in TYPE_FOLDERS and _is_type(name):
        return PATHS["tinker.types"]
    return PATHS.get(path)


def find_reason(path: str) -> str | None:
    """Return the reason why an official module is missing; None for a path that no official release has."""
    while path:
        if path in ABSENT:
            return ABSENT[path]
        path = path.rpartition(".")[0]
    return None


def _is_type(name: str) -> bool:
    from tinkerwire import types  # noqa: PLC0415  (this table is read before it is needed)

    return name.replace("_", "") in {type_name.lower() for type_name in dir(types)}
