"""All facts of a release that the contract is compared with."""

from __future__ import annotations

from typing import Any

from .classify import Kinds
from .endpoints import read_endpoints
from .futures import read_binary_results, read_futures
from .modules import Modules
from .protobuf import read_proto
from .source import Source
from .types import read_types


def read_facts(source: Source) -> dict[str, Any]:
    """Types, endpoints, results of queued work and protobuf messages of a release, none of it run.

    Raises:
        ValueError: a file cannot be parsed.
    """
    modules = Modules(source.files)
    kinds = Kinds(modules)
    types, in_memory = read_types(kinds)
    return {
        "version": source.version,
        "types": types,
        "inmemory_types": in_memory,
        "endpoints": read_endpoints(kinds),
        "futures": read_futures(kinds),
        "proto_response_types": read_binary_results(kinds),
        "proto": read_proto(modules.trees),
    }
