"""What the server wants of its clients: flags that client/config and client/dynamic_config answer with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tinkerwire._server.http.openapi import Json
from tinkerwire_base.tensors import is_torch_installed

REFUSED: Mapping[str, str] = {
    "enable_grpc_retrieve_future": "this server does not speak gRPC",
    "grpc_target": "this server does not speak gRPC",
}
"""Flags that stay off, and why."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "integer": (int,),
    "string": (str,),
    "null": (type(None),),
}


class ClientConfig:
    """The flags of one wire version: its defaults, with what was set over them.

    Args:
        document: the contract of the version.
        given: flags to set.
        strict_sequence: whether the server refuses operations that are ahead; clients then send chunks in turn.

    Raises:
        ValueError: a flag that the version does not have, one that this server cannot keep, or a wrong type.
    """

    def __init__(self, document: Json, given: Mapping[str, Any], *, strict_sequence: bool = False) -> None:
        schemas = document["components"]["schemas"]
        self._fixed: dict[str, Json] = schemas.get("ClientConfigResponse", {}).get("properties", {})
        self._dynamic: dict[str, Json] = schemas.get("ClientDynamicConfigResponse", {}).get("properties", {})
        known = {**self._fixed, **self._dynamic}
        for name, value in given.items():
            if name not in known:
                names, version = ", ".join(sorted(known)) or "none", document["info"]["version"]
                raise ValueError(f"flag {name!r} is not in wire {version}; known are: {names}")
            if value != known[name]["default"] and name in REFUSED:
                raise ValueError(f"flag {name}: {REFUSED[name]}; leave it at {known[name]['default']}")
            _check_type(name, value, known[name]["type"])
            if name == "custom_loss_server_side" and value and not is_torch_installed():
                raise ValueError(f"flag {name}: the server needs torch for that; install it, or leave the flag away")
        self._given = {"parallel_fwdbwd_chunks": False, **given} if strict_sequence else dict(given)

    def fixed(self) -> Json:
        """What holds for the life of a client."""
        return self._values(self._fixed)

    def dynamic(self) -> Json:
        """What may change."""
        return self._values(self._dynamic)

    @property
    def wants_tokens(self) -> bool:
        """Whether clients exchange their key for a token."""
        return bool(self._given.get("pjwt_auth_enabled", False))

    def _values(self, properties: Mapping[str, Json]) -> Json:
        return {name: self._given.get(name, about["default"]) for name, about in properties.items()}


def parse_flag(text: str) -> tuple[str, Any]:
    """The name and value of ``NAME=VALUE``; a value that is no JSON is text. ValueError without a name or value."""
    name, mark, value = text.partition("=")
    if not name or not mark:
        raise ValueError(f"flag {text!r} is not NAME=VALUE, such as proto_compress_fwdbwd=true")
    try:
        return name, orjson.loads(value)
    except orjson.JSONDecodeError:
        return name, value


def _check_type(name: str, value: Any, kind: str | list[str]) -> None:
    kinds = [kind] if isinstance(kind, str) else kind
    if type(value) not in [found for each in kinds for found in _TYPES[each]]:
        raise ValueError(f"flag {name}: expected {' or '.join(kinds)}, got {value!r}")
