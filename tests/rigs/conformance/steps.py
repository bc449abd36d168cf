"""The steps of the flow by feature, and the comparison of what they found with a prediction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tinkerwire._conformance.official_sdk.steps_by_feature import STEPS
from tinkerwire._conformance.prediction import Prediction
from tinkerwire._conformance.requirement import Feature

Record = dict[str, Any]
FLOW_STEPS: dict[Feature, dict[str, str]] = {
    Feature.TRAIN: {
        "create_lora_training_client": "create_lora_training_client",
        "get_info": "get_info",
        "forward": "forward",
        "forward_backward": "forward_backward",
        "optim_step": "optim_step",
    },
    Feature.SAMPLE: {
        "sampling_client_from_base_model": "sample",
        "sample_topk_prompt_logprobs": "sample with topk_prompt_logprobs",
        "compute_logprobs": "compute_logprobs",
        "get_base_model": "get_tokenizer and get_base_model",
    },
    Feature.SAVE: {
        "save_state": "save_state",
        "load_state": "load_state",
        "training_client_from_state": "create_training_client_from_state",
        "save_weights_for_sampler": "save_weights_for_sampler",
        "sampling_client_from_path": "create_sampling_client with a path",
        "save_weights_and_get_sampling_client": "save_weights_and_get_sampling_client",
        "save_weights_external": "save_weights_external",
        "unknown_state_is_refused": "load_state of an unknown path",
    },
    Feature.MANAGE: {
        "get_server_capabilities": "get_server_capabilities",
        "list_training_runs": "list_training_runs",
        "get_training_run": "get_training_run",
        "list_checkpoints": "list_checkpoints",
        "list_user_checkpoints": "list_user_checkpoints",
        "get_weights_info": "get_weights_info_by_tinker_path",
        "list_sessions": "list_sessions",
        "get_session": "get_session",
        "get_archive_url": "get_checkpoint_archive_url",
        "set_ttl": "set_checkpoint_ttl",
        "publish": "publish_checkpoint",
        "unpublish": "unpublish_checkpoint",
        "delete_checkpoint": "delete_checkpoint",
        "close": "close",
    },
}
"""Steps of the flow that show whether a feature works, with the step of the kit that each stands for."""
ID = re.compile(r"'[^']*'|[\w-]*\d[\w-]*")
ALIASES = {"create_sampling_client": "sample"}
"""Steps of the kit that are part of another step in the flow."""
FIRST_STEPS = {"create_lora_training_client", "sample", "save_state"}
"""Steps without which the kit does not try those behind them; some releases report their error at a later step."""
NEEDS_NO_SERVER = ("unknown_state_is_refused", "close")
"""Steps that also succeed without a server."""
ABSENT = ("object has no attribute", "got an unexpected keyword argument")
"""Errors of a release that cannot do a step."""
SPLIT_STEP = "many_datums"
"""The step that sends a batch in parts. After its failure, some releases wait forever for the parts that they did not
send, before each further operation of the training client."""
CONTINUES = "the operation continues"
"""Text of the error of tinkerwire if a step ends before the deadline of its operation."""
TOLERATED = ("time without zone",)
"""Findings about values that the SDK itself passes on."""


def drop_unclaimed(records: Sequence[Record], wire: str) -> list[Record]:
    """Return the records without steps that are newer than the wire version of the server."""
    claimed = {step.name for steps in STEPS.values() for step in steps if step.applies_to(wire)}
    kit_steps = {flow: kit for steps in FLOW_STEPS.values() for flow, kit in steps.items()}
    return [record for record in records if kit_steps.get(record["step"]) in (None, *claimed)]


def features_of(records: Sequence[Record]) -> dict[Feature, bool | None]:
    """Return whether each feature worked in a flow; None for one of which the flow saw nothing."""
    outcomes = _read(records)
    works: dict[Feature, bool | None] = {}
    for feature, steps in FLOW_STEPS.items():
        seen = [outcomes[step] for step in steps if outcomes.get(step) is not None]
        works[feature] = all(seen) if seen else None
    return works


def is_connected(records: Sequence[Record]) -> bool:
    """Check whether any step of a flow reached the server and succeeded."""
    outcomes = _read(records)
    return any(outcomes.get(step) for steps in FLOW_STEPS.values() for step in steps if step not in NEEDS_NO_SERVER)


def compare(prediction: Prediction, records: Sequence[Record]) -> list[str]:
    """Return the errors of a prediction, in words."""
    predicted, seen = not prediction.breaks(Feature.CONNECT), is_connected(records)
    if predicted != seen:
        return [f"connect: predicted {predicted}, seen {seen}"]
    if not seen:
        return []
    outcomes = _read(records)
    details = {record["step"]: record["detail"][:160] for record in records}
    wrong = []
    for feature, steps in FLOW_STEPS.items():
        failed = {kit for flow, kit in steps.items() if outcomes.get(flow) is False}
        working = {kit for flow, kit in steps.items() if outcomes.get(flow)}
        broken = prediction.find(feature)
        absent = {ALIASES.get(step, step) for step in broken.steps} if broken else set()
        if broken is None and failed:
            texts = [f"{flow}: {details[flow]}" for flow, kit in steps.items() if kit in failed]
            wrong.append(f"{feature.value}: predicted to work, seen broken: {'; '.join(texts)}")
        elif broken is not None and working and not failed and working.issuperset(absent):
            wrong.append(f"{feature.value}: predicted to break, seen working: {', '.join(sorted(absent or working))}")
        elif absent and failed and failed.isdisjoint(absent) and absent.isdisjoint(FIRST_STEPS):
            texts = [", ".join(sorted(names)) for names in (absent, failed)]
            wrong.append(f"{feature.value}: predicted without {texts[0]}, seen without {texts[1]}")
    return wrong


def _read(records: Sequence[Record]) -> dict[str, bool | None]:
    """Return whether each step worked; None if it shows nothing."""
    training = {
        _remove_ids(record["detail"])
        for record in records
        if record["step"] in FLOW_STEPS[Feature.TRAIN] and record["outcome"] in ("error", "timeout")
    }
    waits = any(record["step"] == SPLIT_STEP and record["outcome"] in ("error", "timeout") for record in records)

    def fails_by_training(record: Record) -> bool:
        """Check whether a step of another feature trains first and fails like the training, or waits because of it."""
        if record["step"] in FLOW_STEPS[Feature.TRAIN]:
            return False
        is_stuck = waits and record["step"] in FLOW_STEPS[Feature.SAVE] and record["outcome"] == "timeout"
        return is_stuck or _remove_ids(record["detail"]) in training

    return {record["step"]: None if fails_by_training(record) else _outcome(record) for record in records}


def _remove_ids(detail: str) -> str:
    return ID.sub("", detail)


def _outcome(record: Record) -> bool | None:
    detail = record["detail"]
    if record["outcome"] in ("skipped", "blocked") or any(text in detail for text in ABSENT):
        return None
    if record["step"] == "unknown_state_is_refused" and CONTINUES in detail:
        return None
    if record["outcome"] == "wrong" and any(text in detail for text in TOLERATED):
        return True
    return bool(record["outcome"] == "works")
