"""Checkpoint paths."""

from __future__ import annotations

from typing import Any

import pytest

from tinkerwire_generated.models import (
    ParsedCheckpointTinkerPath,
)


@pytest.mark.parametrize(("kind", "checkpoint_type"), [("weights", "training"), ("sampler_weights", "sampler")])
def test_tinker_path_splits_into_run_type_and_id(kind: str, checkpoint_type: str) -> None:
    """A path yields the run, type and id of its checkpoint."""
    path = f"tinker://run:train:0/{kind}/step-1"
    parsed_path = ParsedCheckpointTinkerPath.from_tinker_path(path)
    assert (
        parsed_path.training_run_id,
        parsed_path.checkpoint_type,
        parsed_path.checkpoint_id,
        parsed_path.tinker_path,
    ) == (
        "run:train:0",
        checkpoint_type,
        f"{kind}/step-1",
        path,
    )


@pytest.mark.parametrize(
    "path",
    [
        *("", "run/weights/x", "tinker://run", "tinker://run/weights", "tinker://run/weights/", "tinker:///weights/x"),
        *("tinker://run/weights/a/b", "tinker://run/other/x", "https://run/weights/x", None, 5),
    ],
)
def test_other_text_is_rejected_as_a_tinker_path(path: Any) -> None:
    """Other values raise an error that shows the value and the expected forms."""
    with pytest.raises(ValueError, match=r"checkpoint path: expected tinker://RUN/weights/NAME or"):
        ParsedCheckpointTinkerPath.from_tinker_path(path)
