"""The public names, methods, parameters and defaults of the official SDK 0.38.0: whoever calls those can call ours."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tinkerwire as tw

FACTS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "facts" / "public" / "0.38.0.json").read_text())
"""Exports, and by class and method the parameters: name, kind, and the default where there is one."""
DIFFERENCES = {
    "LossHandle": "losses that the server computes are not there yet",
    "PerDatumLossFn": "goes with LossHandle",
    "Timeout": "of the official SDK's HTTP library; RetryConfig and result(timeout) bound the time",
    "RequestOptions": "goes with Timeout",
    "ServiceClient.__init__": "an option that there is not is an error; the official one takes any",
    "ServiceClient.__exit__": "the with statement gives its arguments by place",
    "ServiceClient.create_custom_loss": "goes with LossHandle",
    "ServiceClient.holder": "the inside of the official SDK",
    "TrainingClient.__init__": "made by ServiceClient only",
    "SamplingClient.__init__": "made by other clients only",
    "SamplingClient.create": "the inside of the official SDK",
    "SamplingClient.on_queue_state_change": "the inside of the official SDK",
    "RestClient.__init__": "what a ServiceClient gives it is a connection, and called so",
    "RestClient.whoami": "keys are not exchanged for tokens that would say it",
    "AdminClient.__init__": "as RestClient.__init__",
}
"""Where we differ on purpose, and why."""
OLDER = {
    tw.ServiceClient: ["create_rest_client", "get_server_capabilities", "get_server_capabilities_async"],
    tw.TrainingClient: ["unload_model", "forward_async", "load_state", "load_state_with_optimizer_async"],
    tw.SamplingClient: ["sample_async", "compute_logprobs_async"],
    tw.RestClient: [
        "get_audit_log",
        "get_billing_usage",
        "get_checkpoint_archive_url",
        "get_checkpoint_archive_url_from_tinker_path_async",
        "get_current_checkpoint_storage_usage",
    ],
}
"""Names that the official SDK has dropped or is about to, which servers still serve."""
KINDS = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "rest",
    inspect.Parameter.VAR_KEYWORD: "more",
}


def parameters(method: Any) -> list[list[Any]]:
    """The parameters of a method, in the form of the facts."""
    found = inspect.signature(method).parameters.values()
    return [
        [each.name, KINDS[each.kind], *([] if each.default is each.empty else [each.default])]
        for each in found
        if each.name != "self"
    ]


def refused(official: list[list[Any]], ours: list[list[Any]]) -> Iterator[str]:
    """What a call that the official method takes would stumble over in ours."""
    by_place = [each for each in ours if each[1] == "positional"]
    by_name = {each[0]: each for each in ours}
    for place, (name, kind, *default) in enumerate(official):
        found = by_name.get(name)
        if found is None or (kind == "positional" and (place >= len(by_place) or by_place[place] is not found)):
            yield f"{name} is missing or out of place"
        elif default and found[2:] != default:
            yield f"{name} defaults to {found[2:]}, not {default}"
    names = {each[0] for each in official}
    yield from (f"{name} is required" for name, _, *default in ours if name not in names and not default)


def differences() -> Iterator[tuple[str, str]]:
    """Each name that differs from the official one, and how."""
    for name in FACTS["exports"]:
        if name not in tw.__all__:
            yield name, "is not exported"
    for kind, methods in FACTS["classes"].items():
        for name, official in methods.items():
            method = getattr(getattr(tw, kind), name, None)
            if method is None or (official is None) == callable(method):
                yield f"{kind}.{name}", "is missing"
                continue
            if official is None:
                continue
            found = list(refused(official, parameters(method)))
            if name.endswith("_async") != inspect.iscoroutinefunction(method):
                found.append("is async, or is not")
            if found:
                yield f"{kind}.{name}", "; ".join(found)


def test_differences_have_reasons() -> None:
    """What differs is in the list of reasons, and what is in the list differs."""
    found = dict(differences())
    assert not {name: how for name, how in found.items() if name not in DIFFERENCES}
    assert not [name for name in DIFFERENCES if name not in found]


def test_exports_are_there() -> None:
    """__all__ names what is there, once."""
    assert len(tw.__all__) == len(set(tw.__all__))
    assert all(hasattr(tw, name) for name in tw.__all__)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in OLDER.items() for name in names])
def test_older_names_stay(kind: type, name: str) -> None:
    """What servers serve, users may call."""
    assert callable(getattr(kind, name))


@pytest.mark.parametrize(
    ("official", "ours", "found"),
    [
        ([["a", "positional"]], [["a", "positional", 1]], []),
        ([["a", "positional", 1]], [["a", "positional", 2]], ["a defaults to [2], not [1]"]),
        ([["a", "positional"]], [["b", "positional", 0], ["a", "positional"]], ["a is missing or out of place"]),
        ([["a", "positional"]], [["a", "keyword"]], ["a is missing or out of place"]),
        ([], [["b", "keyword"]], ["b is required"]),
        ([["a", "keyword", None]], [["a", "keyword", None], ["b", "keyword", 0]], []),
    ],
)
def test_the_comparison(official: list[list[Any]], ours: list[list[Any]], found: list[str]) -> None:
    """It sees defaults, places, kinds and what is asked for in addition."""
    assert list(refused(official, ours)) == found
