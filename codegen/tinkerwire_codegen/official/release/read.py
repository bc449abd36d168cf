"""All facts of a release that the contract is compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .archive import PACKAGE, Release
from .behaviour import read_behaviour
from .calls import CallReader
from .classify import Classifier
from .endpoints import read_endpoints
from .evaluation import Evaluator
from .futures import read_futures, read_protobuf_results
from .modules import ReleaseModules
from .problems import Problems
from .protobuf import read_proto
from .types import read_types


def read_facts(release: Release) -> dict[str, Any]:
    """Read types, endpoints, results of queued work and protobuf messages of a release, without running it.

    ``behaviour`` holds what types and endpoints do not show, by kind and place. ``not_understood`` lists
    the parts of the release that cannot be read, with file and line; ``unread_methods`` the methods of calls whose
    path is one of these, ``unread_files`` the files of which nothing is known.
    """
    problems = Problems()
    for path, reason in release.unreadable.items():
        problems.add_file(path, reason)
    modules = ReleaseModules(release.files, problems)
    classifier = Classifier(modules)
    evaluator = Evaluator(modules)
    reader = CallReader(modules, evaluator)
    calls = _read_part(problems, "requests", reader.read, [])
    types, in_memory = _read_part(problems, "types", lambda: read_types(classifier), ({}, {}))
    endpoints = _read_part(problems, "endpoints", lambda: read_endpoints(classifier, calls, evaluator), {})
    behaviour = _read_part(problems, "behaviour", lambda: read_behaviour(classifier, reader, calls, evaluator), {})
    return {
        "version": release.version,
        "types": types,
        "inmemory_types": in_memory,
        "endpoints": endpoints,
        "unread_methods": sorted(reader.unread_methods),
        "futures": _read_part(problems, "futures", lambda: read_futures(classifier, evaluator), []),
        "proto_response_types": read_protobuf_results(classifier),
        "proto": read_proto(modules.trees, problems),
        "behaviour": behaviour,
        "unread_files": sorted(problems.files),
        "not_understood": problems.to_facts(),
    }


def _read_part(problems: Problems, part: str, read: Callable[[], Any], otherwise: Any) -> Any:
    """Read a part of the facts; source that this reader does not foresee is a problem, not an end."""
    try:
        return read()
    except Exception as error:
        problems.add_file(f"{PACKAGE}/__init__.py", f"{part}: {type(error).__name__}: {error}")
        return otherwise
