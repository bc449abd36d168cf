"""Which module here answers for which module of the official SDK."""

from __future__ import annotations

from collections.abc import Mapping

API_VERSION = "0.38.0"
"""What ``tinker.__version__`` says: the release of the official SDK whose names are here."""

PATHS: Mapping[str, str] = {
    "tinker": "tinkerwire",
    "tinker._compat": "tinkerwire.dropin.compat",
    "tinker._exceptions": "tinkerwire",
    "tinker._version": "tinkerwire.version",
    "tinker.lib": "tinkerwire",
    "tinker.lib.api_future_impl": "tinkerwire.futures.future",
    "tinker.lib.experimental": "tinkerwire.experimental",
    "tinker.lib.public_interfaces": "tinkerwire",
    "tinker.lib.public_interfaces.admin_client": "tinkerwire",
    "tinker.lib.public_interfaces.api_future": "tinkerwire.futures.future",
    "tinker.lib.public_interfaces.custom_loss": "tinkerwire",
    "tinker.lib.public_interfaces.rest_client": "tinkerwire.rest.client",
    "tinker.lib.public_interfaces.sampling_client": "tinkerwire.sampling.client",
    "tinker.lib.public_interfaces.service_client": "tinkerwire.service",
    "tinker.lib.public_interfaces.training_client": "tinkerwire.training.client",
    "tinker.lib.retry_handler": "tinkerwire.sending.retry",
    "tinker.types": "tinkerwire.types",
    "tinker.types._pydantic_types": "tinkerwire.types",
    "tinker.types.optimizer": "tinkerwire.types",
    "tinker.types.search_owner": "tinkerwire.types",
    "tinker.types.session_status": "tinkerwire.types",
    "tinker.types.session_status_query": "tinkerwire.types",
    "tinker.types.shared": "tinkerwire.types",
}
"""Modules that are not called after the one type in them; ``tinker.types.tensor_data`` and its like are not listed."""

TYPE_FOLDERS = ("tinker.types", "tinker.types._pydantic_types", "tinker.types.shared")
"""Where each module is called after its type: ``tensor_data`` after TensorData."""


def target_of(path: str) -> str | None:
    """The module here that answers for an official one, None when there is none."""
    folder, _, name = path.rpartition(".")
    if path not in PATHS and folder in TYPE_FOLDERS and _is_type(name):
        return PATHS["tinker.types"]
    return PATHS.get(path)


def _is_type(name: str) -> bool:
    from tinkerwire import types  # noqa: PLC0415  (this table is read before it is needed)

    return name.replace("_", "") in {each.lower() for each in dir(types)}
