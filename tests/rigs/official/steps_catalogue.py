"""Steps of the flow that list, describe, change and delete checkpoints and runs."""

from __future__ import annotations

import inspect
import urllib.request
from typing import Any

from tests.rigs.official.flow_state import RANK, Flow, Skipped, Step, expect, expect_refused, near


def _create_rest_client(flow: Flow) -> Any:
    return flow.service.create_rest_client()


def _find_checkpoint(flow: Flow, path: str) -> Any:
    """Return the checkpoint of that path as the listing of its run shows it, or None."""
    listed = flow.wait(_create_rest_client(flow).list_checkpoints(flow["model_id"])).checkpoints
    return next((checkpoint for checkpoint in listed if checkpoint.tinker_path == path), None)


def list_training_runs(flow: Flow) -> str:
    response = flow.wait(_create_rest_client(flow).list_training_runs(limit=50))
    ids = [run.training_run_id for run in response.training_runs]
    expect(flow["model_id"] in ids, f"{flow['model_id']} is not among {ids}")
    return f"{len(ids)} runs, total_count {response.cursor.total_count}"


def list_training_runs_by_page(flow: Flow) -> str:
    first, second = (
        flow.wait(_create_rest_client(flow).list_training_runs(limit=1, offset=offset)).training_runs
        for offset in (0, 1)
    )
    expect(len(first) == 1 and len(second) == 1, f"{len(first)} and {len(second)} runs on pages of one")
    expect(first[0].training_run_id != second[0].training_run_id, "two pages show the same run")
    return "two pages of one run"


def get_training_run(flow: Flow) -> str:
    run = flow.wait(_create_rest_client(flow).get_training_run(flow["model_id"]))
    expect(run.training_run_id == flow["model_id"], f"run {run.training_run_id}")
    expect(run.base_model == flow.base_model, f"base_model {run.base_model}")
    expect(run.is_lora and run.lora_rank == RANK, f"is_lora {run.is_lora}, lora_rank {run.lora_rank}")
    return f"last_checkpoint {'given' if run.last_checkpoint else 'null'}"


def get_training_run_by_tinker_path(flow: Flow) -> str:
    run = flow.wait(_create_rest_client(flow).get_training_run_by_tinker_path(flow["state_path"]))
    expect(run.training_run_id == flow["model_id"], f"run {run.training_run_id}")
    return run.training_run_id


def list_checkpoints(flow: Flow) -> str:
    listed = flow.wait(_create_rest_client(flow).list_checkpoints(flow["model_id"])).checkpoints
    paths = [checkpoint.tinker_path for checkpoint in listed]
    expect(flow["state_path"] in paths, f"{flow['state_path']} is not among {paths}")
    if flow.has("sampler_path"):
        samplers = [c for c in listed if c.checkpoint_type == "sampler" and "flow-sampler" in c.tinker_path]
        expect(len(samplers) == 1, f"no sampler checkpoint flow-sampler among {paths}")
    expect(listed[0].time.tzinfo is not None, f"time without zone: {listed[0].time!r}")
    return f"{len(paths)} checkpoints"


def list_user_checkpoints(flow: Flow) -> str:
    listed = flow.wait(_create_rest_client(flow).list_user_checkpoints(limit=50)).checkpoints
    paths = [checkpoint.tinker_path for checkpoint in listed]
    expect(flow["state_path"] in paths, f"{flow['state_path']} is not among {paths}")
    return f"{len(paths)} checkpoints"


def get_weights_info(flow: Flow) -> str:
    info = flow.wait(_create_rest_client(flow).get_weights_info_by_tinker_path(flow["state_path"]))
    expect(info.base_model == flow.base_model, f"base_model {info.base_model}")
    expect(info.is_lora and info.lora_rank == RANK, f"is_lora {info.is_lora}, lora_rank {info.lora_rank}")
    return f"lora_rank {info.lora_rank}"


def get_sampler(flow: Flow) -> str:
    sessions = flow.wait(_create_rest_client(flow).get_session(flow["session_id"]))
    sampler = flow.wait(_create_rest_client(flow).get_sampler(sessions.sampler_ids[0]))
    expect(sampler.base_model == flow.base_model, f"base_model {sampler.base_model}")
    return f"model_path {sampler.model_path}"


def list_sessions(flow: Flow) -> str:
    sessions = flow.wait(_create_rest_client(flow).list_sessions(limit=50)).sessions
    for session_id in sessions:
        session = flow.wait(_create_rest_client(flow).get_session(session_id))
        if flow["model_id"] in session.training_run_ids:
            flow.keep(session_id=session_id)
            return f"{len(sessions)} sessions"
    raise LookupError(f"no session among {sessions} has the training run {flow['model_id']}")


def get_session(flow: Flow) -> str:
    session = flow.wait(_create_rest_client(flow).get_session(flow["session_id"]))
    return f"{len(session.training_run_ids)} training runs, {len(session.sampler_ids)} samplers"


def get_archive_url(flow: Flow) -> str:
    if not hasattr(_create_rest_client(flow), "get_checkpoint_archive_url_from_tinker_path"):
        raise Skipped("SDK 0.36.0 and later have no archive")
    path = flow["sampler_path"]
    if "/sampler_weights/" not in path:
        path = path.replace("/flow-sampler", "/sampler_weights/flow-sampler")
    response = flow.wait(_create_rest_client(flow).get_checkpoint_archive_url_from_tinker_path(path))
    expect(response.url.startswith("http"), f"url {response.url}")
    expect(response.expires is not None, "expires is null")
    return "url and expires"


def set_ttl(flow: Flow) -> str:
    flow.wait(_create_rest_client(flow).set_checkpoint_ttl_from_tinker_path(flow["state_path"], 3600))
    expires = _find_checkpoint(flow, flow["state_path"]).expires_at
    expect(expires is not None, "expires_at is null after a ttl was set")
    flow.wait(_create_rest_client(flow).set_checkpoint_ttl_from_tinker_path(flow["state_path"], None))
    expires = _find_checkpoint(flow, flow["state_path"]).expires_at
    expect(expires is None, f"expires_at is {expires} after the ttl was removed")
    return "set and removed"


def save_state_with_ttl(flow: Flow) -> str:
    path = flow.wait(flow["training"].save_state("flow-short", ttl_seconds=3600)).path
    flow.keep(short_path=path)
    expires = _find_checkpoint(flow, path).expires_at
    expect(expires is not None, "expires_at is null")
    return path


def publish(flow: Flow) -> str:
    flow.wait(_create_rest_client(flow).publish_checkpoint_from_tinker_path(flow["state_path"]))
    expect(_find_checkpoint(flow, flow["state_path"]).public, "not public after publish")
    flow.keep(published=True)
    return "public"


def unpublish(flow: Flow) -> str:
    expect(flow["published"], "not published")
    flow.wait(_create_rest_client(flow).unpublish_checkpoint_from_tinker_path(flow["state_path"]))
    expect(not _find_checkpoint(flow, flow["state_path"]).public, "still public after unpublish")
    return "private"


def delete_checkpoint(flow: Flow) -> str:
    path = flow["state_path"]
    flow.wait(_create_rest_client(flow).delete_checkpoint_from_tinker_path(path))
    expect(_find_checkpoint(flow, path) is None, "still listed after delete")
    return "gone from the listing"


def save_weights_external(flow: Flow) -> str:
    """Check that the offered file holds arrays of the adapter."""
    if not hasattr(_create_rest_client(flow), "get_external_weights_urls"):
        raise Skipped("SDK before 0.28.1 saves nothing to download")
    path = flow.wait(flow["training"].save_weights_external("flow-external")).path
    response = flow.wait(_create_rest_client(flow).get_external_weights_urls(path))
    with urllib.request.urlopen(next(iter(response.urls.values())), timeout=flow.timeout_s) as file:
        size = len(file.read())
    expect(size > 0, "an empty file")
    return f"{size} bytes"


def copy_weights(flow: Flow) -> str:
    """Check that the copy samples like the original."""
    if not hasattr(_create_rest_client(flow), "copy_weights"):
        raise Skipped("SDK before 0.26.2 does not copy")
    path = flow.wait(_create_rest_client(flow).copy_weights(flow["state_path"], "flow-project"))
    training = flow.service.create_training_client_from_state(path)
    near(flow.loss(training), flow["state_loss"], 1e-4, "loss of the copy")
    return path


def user_metadata(flow: Flow) -> str:
    if "user_metadata" not in inspect.signature(flow.client.TrainingClient.save_state).parameters:
        raise Skipped("SDK before 0.27.2 saves no metadata")
    path = flow.wait(flow["training"].save_state("flow-metadata", user_metadata={"note": "kept"})).path
    metadata = _find_checkpoint(flow, path).user_metadata
    expect(metadata == {"note": "kept"}, f"user_metadata {metadata}")
    return "kept"


def overwrite(flow: Flow) -> str:
    training = flow["training"]
    if "overwrite" not in inspect.signature(flow.client.TrainingClient.save_state).parameters:
        raise Skipped("SDK before 0.20.0 does not overwrite")
    flow.wait(training.save_state("flow-over"))
    error = expect_refused("a name that is taken", lambda: flow.wait(training.save_state("flow-over")))
    flow.wait(training.save_state("flow-over", overwrite=True))
    return f"overwritten on request; else {error[:80]}"


def unknown_run_is_refused(flow: Flow) -> str:
    return expect_refused(
        "an unknown run", lambda: flow.wait(_create_rest_client(flow).get_training_run("no-such-run"))
    )


STEPS: list[Step] = [
    list_training_runs,
    list_training_runs_by_page,
    get_training_run,
    get_training_run_by_tinker_path,
    list_checkpoints,
    list_user_checkpoints,
    get_weights_info,
    list_sessions,
    get_session,
    get_sampler,
    get_archive_url,
    set_ttl,
    save_state_with_ttl,
    save_weights_external,
    copy_weights,
    user_metadata,
    overwrite,
    publish,
    unpublish,
    delete_checkpoint,
    unknown_run_is_refused,
]
