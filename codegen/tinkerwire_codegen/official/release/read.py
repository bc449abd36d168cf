"""All facts of a release that the contract is compared with."""

from __future__ import annotations

from typing import Any

from .archive import Release
from .classify import Classifier
from .endpoints import read_endpoints
from .futures import read_futures, read_protobuf_results
from .modules import ReleaseModules
from .protobuf import read_proto
from .types import read_types


def read_facts(release: Release) -> dict[str, Any]:
    """Read types, endpoints, results of queued work and protobuf messages of a release, without running it.

    Raises:
        ValueError: a file cannot be parsed.
    """
    modules = ReleaseModules(release.files)
    classifier = Classifier(modules)
    types, in_memory = read_types(classifier)
    return {
        "version": release.version,
        "types": types,
        "inmemory_types": in_memory,
        "endpoints": read_endpoints(classifier),
        "futures": read_futures(classifier),
        "proto_response_types": read_protobuf_results(classifier),
        "proto": read_proto(modules.trees),
    }
