"""Client configuration: the flags in the responses of client/config and client/dynamic_config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tinkerwire._server.http.openapi import Document
from tinkerwire._server.options import require_type, split_assignment
from tinkerwire_base.tensors import is_torch_installed

UNSUPPORTED_FLAGS: Mapping[str, str] = {
    "enable_grpc_retrieve_future": "this server does not support gRPC",
    "grpc_target": "this server does not support gRPC",
}
"""Flags that must keep their defaults, each with the reason."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "integer": (int,),
    "string": (str,),
    "null": (type(None),),
}


class ClientConfig:
    """The flags of one wire version: its defaults, overridden by the settings of the server.

    Args:
        document: the contract of the version.
        flags: values of flags.
        strict_sequence: the server rejects operations that leave a gap; clients then send chunks one after another.

    Raises:
        TypeError: the flags are not a mapping.
        ValueError: the version does not have a flag, the server does not support its value, or its type is wrong.
    """

    def __init__(self, document: Document, flags: Mapping[str, Any], *, strict_sequence: bool = False) -> None:
        require_type("client_config", flags, Mapping, "a mapping of flags")
        schemas = document["components"]["schemas"]
        self._fixed: dict[str, Document] = schemas.get("ClientConfigResponse", {}).get("properties", {})
        self._dynamic: dict[str, Document] = schemas.get("ClientDynamicConfigResponse", {}).get("properties", {})
        flag_schemas = {**self._fixed, **self._dynamic}
        for name, value in flags.items():
            if name not in flag_schemas:
                names, version = ", ".join(sorted(flag_schemas)) or "(none)", document["info"]["version"]
                raise ValueError(f"flag {name!r} does not exist in wire {version}; choose from {names}")
            default = flag_schemas[name]["default"]
            if value != default and name in UNSUPPORTED_FLAGS:
                raise ValueError(f"flag {name} must be {default}: {UNSUPPORTED_FLAGS[name]}")
            _check_type(name, value, flag_schemas[name]["type"])
            if name == "custom_loss_server_side" and value and not is_torch_installed():
                raise ValueError(
                    f"flag {name}: requires torch in the server's environment; install it or omit the flag"
                )
        self._flags = {"parallel_fwdbwd_chunks": False, **flags} if strict_sequence else dict(flags)

    def fixed_flags(self) -> Document:
        """Return the flags that are constant for the lifetime of a client."""
        return self._values(self._fixed)

    def dynamic_flags(self) -> Document:
        """Return the flags that may change during the lifetime of a client."""
        return self._values(self._dynamic)

    @property
    def uses_tokens(self) -> bool:
        """True if clients exchange their API key for a token."""
        return bool(self._flags.get("pjwt_auth_enabled", False))

    def _values(self, properties: Mapping[str, Document]) -> Document:
        return {name: self._flags.get(name, schema["default"]) for name, schema in properties.items()}


def parse_flag(text: str) -> tuple[str, Any]:
    """Return the name and value of ``NAME=VALUE``; a value that is not JSON is a string.

    Raises:
        ValueError: the text does not have this form.
    """
    name, value = split_assignment("flag", text, "proto_compress_fwdbwd=true")
    try:
        return name, orjson.loads(value)
    except orjson.JSONDecodeError:
        return name, value


def _check_type(name: str, value: Any, json_type: str | list[str]) -> None:
    json_types = [json_type] if isinstance(json_type, str) else json_type
    if type(value) not in [python_type for json_type in json_types for python_type in _TYPES[json_type]]:
        raise ValueError(f"flag {name}: expected {' or '.join(json_types)}, got {value!r}")
