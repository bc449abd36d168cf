"""Tests that the server implements every operation of the contract, at the contract's paths."""

from __future__ import annotations

import pytest

from tinkerwire._server.handlers import HANDLERS
from tinkerwire._server.http.openapi import load_contract
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.http.routing import Router
from tinkerwire_base.conversion.versioning import is_available, parse_version
from tinkerwire_generated.availability import OPERATION_VERSIONS
from tinkerwire_generated.operations import OPERATIONS

SERVED = "0.16.1"
SERVED_VERSIONS = ("0.3.0", SERVED, "0.25.0", "0.26.2", "0.38.0")


def load_operations(version: str) -> set[str]:
    """Return the operations of one wire version."""
    return {
        name
        for name in OPERATIONS
        if is_available(
            dict(zip(("x-since", "x-until"), OPERATION_VERSIONS.get(name, ()), strict=False)), parse_version(version)
        )
    }


TODAY = sorted(load_operations(SERVED))


@pytest.fixture(scope="module")
def router() -> Router:
    return Router(load_contract(SERVED))


def test_every_operation_has_a_handler() -> None:
    """Every served operation has a handler, and every handler has an operation."""
    assert HANDLERS.keys() == {name for version in SERVED_VERSIONS for name in load_operations(version)}


@pytest.mark.parametrize("name", TODAY)
def test_every_operation_is_found_by_its_path(router: Router, name: str) -> None:
    """A path with ids in the service's format leads to its operation and returns the ids."""
    ids = {
        "session_id": "s-1",
        "sampler_id": "s-1:sample:0",
        "training_run_id": "s-1:train:0",
        "checkpoint_id": "weights/0001",
    }
    operation, path_ids = router.find(OPERATIONS[name].method, OPERATIONS[name].path.format(**ids))
    assert operation.name == name
    assert path_ids.items() <= ids.items()


def test_escaped_id_is_decoded(router: Router) -> None:
    """Colons, slashes and spaces may be escaped."""
    path = "/api/v1/training_runs/s%3Atrain%3A0/checkpoints/weights%2Fa%20b/publish"
    assert router.find("POST", path)[1] == {"training_run_id": "s:train:0", "checkpoint_id": "weights/a b"}


def test_unknown_path_is_404(router: Router) -> None:
    """Paths that the contract lacks do not exist."""
    with pytest.raises(HttpError, match="/api/v1/nothing") as rejection:
        router.find("GET", "/api/v1/nothing")
    assert rejection.value.status == 404


def test_wrong_method_is_405_with_allow(router: Router) -> None:
    """The response names the valid method."""
    with pytest.raises(HttpError) as rejection:
        router.find("PATCH", "/api/v1/training_runs/r/checkpoints/weights/a/publish")
    assert (rejection.value.status, rejection.value.headers["allow"]) == (405, "DELETE, POST")


def test_operation_of_another_version_is_404() -> None:
    """Each wire version has its own paths."""
    old = "/api/v1/models/m/checkpoints"
    assert Router(load_contract("0.3.0")).find("GET", old)[0].name == "list_model_checkpoints"
    with pytest.raises(HttpError):
        Router(load_contract(SERVED)).find("GET", old)
