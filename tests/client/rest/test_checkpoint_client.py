"""Tests of the search for checkpoints, and of the deletion of several."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import tinkerwire as tw
from support.checkpoint_archives import PATH
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(60)
NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
CHECKPOINTS = [
    {
        "checkpoint_id": f"{folder}/{name}",
        "checkpoint_type": kind,
        "tinker_path": f"tinker://m1/{folder}/{name}",
        "time": time and time.isoformat(),
    }
    for folder, kind, name, time in (
        ("weights", "training", "early", NOON - timedelta(hours=1)),
        ("weights", "training", "noon", NOON),
        ("sampler_weights", "sampler", "late", NOON + timedelta(hours=1)),
        ("weights", "training", "timeless", None),
    )
]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, ["early", "noon", "late", "timeless"]),
        ({"checkpoint_type": "sampler"}, ["late"]),
        ({"before": NOON}, ["early"]),
        ({"after": NOON}, ["late"]),
        ({"after": NOON.replace(tzinfo=None)}, ["late"]),
        ({"before": NOON.astimezone(timezone(timedelta(hours=5)))}, ["early"]),
        (
            {"after": NOON - timedelta(hours=2), "before": NOON + timedelta(hours=2), "checkpoint_type": "training"},
            ["early", "noon"],
        ),
    ],
)
def test_found_checkpoints_match_all_conditions(
    conditions: dict[str, Any], expected: list[str], server: ScriptedServer, rest: tw.RestClient
) -> None:
    """A time without a zone is UTC; a checkpoint without a time matches no condition on the time."""
    server.rules["training_runs/m1/checkpoints"] = lambda _: ScriptedResponse({"checkpoints": CHECKPOINTS})
    found = rest.find_checkpoints("m1", **conditions).result(TEST_TIMEOUT_S)
    assert [checkpoint.checkpoint_id.rpartition("/")[2] for checkpoint in found] == expected


def test_checkpoint_is_found_by_its_path(server: ScriptedServer, rest: tw.RestClient) -> None:
    server.rules["training_runs/m1/checkpoints"] = lambda _: ScriptedResponse({"checkpoints": CHECKPOINTS})
    path = "tinker://m1/sampler_weights/late"
    assert rest.get_checkpoint(path).result(TEST_TIMEOUT_S).tinker_path == path
    with pytest.raises(tw.TinkerError, match="'tinker://m1/weights/late' does not exist; see list_checkpoints"):
        rest.get_checkpoint("tinker://m1/weights/late").result(TEST_TIMEOUT_S)


def test_deletion_of_several_reports_each_error(server: ScriptedServer, rest: tw.RestClient) -> None:
    """Repeated paths count once, and an error does not stop the others."""
    server.rules["training_runs/m1/checkpoints/weights/a"] = lambda _: ScriptedResponse(b"", status=204)
    server.rules["training_runs/m1/checkpoints/weights/b"] = lambda _: ScriptedResponse({"detail": "no"}, status=404)
    deletion = rest.delete_checkpoints([PATH, PATH, "tinker://m1/weights/b"]).result(TEST_TIMEOUT_S)
    assert deletion.deleted == (PATH,)
    assert list(deletion.failed) == ["tinker://m1/weights/b"]
    with pytest.raises(TypeError, match="tinker_paths: expected a list of str, got str"):
        rest.delete_checkpoints(PATH)
    with pytest.raises(ValueError, match="must name a run and a checkpoint"):
        rest.delete_checkpoints([PATH, "x"])
