"""Steps of the flow that list, describe, change and delete checkpoints and runs."""

from __future__ import annotations

import inspect
import urllib.request
from typing import Any

from tests.rigs.official.flow_state import RANK, Flow, Skipped, Step, expect, expect_refused, near


def _create_rest_client(walk: Flow) -> Any:
    return walk.service.create_rest_client()


def _find_checkpoint(walk: Flow, path: str) -> Any:
    """Return the checkpoint of that path as the listing of its run shows it, or None."""
    listed = walk.wait(_create_rest_client(walk).list_checkpoints(walk["model_id"])).checkpoints
    return next((checkpoint for checkpoint in listed if checkpoint.tinker_path == path), None)


def list_training_runs(walk: Flow) -> str:
    response = walk.wait(_create_rest_client(walk).list_training_runs(limit=50))
    ids = [run.training_run_id for run in response.training_runs]
    expect(walk["model_id"] in ids, f"{walk['model_id']} is not among {ids}")
    return f"{len(ids)} runs, total_count {response.cursor.total_count}"


def list_training_runs_by_page(walk: Flow) -> str:
    first, second = (
        walk.wait(_create_rest_client(walk).list_training_runs(limit=1, offset=offset)).training_runs
        for offset in (0, 1)
    )
    expect(len(first) == 1 and len(second) == 1, f"{len(first)} and {len(second)} runs on pages of one")
    expect(first[0].training_run_id != second[0].training_run_id, "two pages show the same run")
    return "two pages of one run"


def get_training_run(walk: Flow) -> str:
    run = walk.wait(_create_rest_client(walk).get_training_run(walk["model_id"]))
    expect(run.training_run_id == walk["model_id"], f"run {run.training_run_id}")
    expect(run.base_model == walk.base_model, f"base_model {run.base_model}")
    expect(run.is_lora and run.lora_rank == RANK, f"is_lora {run.is_lora}, lora_rank {run.lora_rank}")
    return f"last_checkpoint {'given' if run.last_checkpoint else 'null'}"


def get_training_run_by_tinker_path(walk: Flow) -> str:
    run = walk.wait(_create_rest_client(walk).get_training_run_by_tinker_path(walk["state_path"]))
    expect(run.training_run_id == walk["model_id"], f"run {run.training_run_id}")
    return run.training_run_id


def list_checkpoints(walk: Flow) -> str:
    listed = walk.wait(_create_rest_client(walk).list_checkpoints(walk["model_id"])).checkpoints
    paths = [checkpoint.tinker_path for checkpoint in listed]
    expect(walk["state_path"] in paths, f"{walk['state_path']} is not among {paths}")
    samplers = [c for c in listed if c.checkpoint_type == "sampler" and "flow-sampler" in c.tinker_path]
    expect(len(samplers) == 1, f"no sampler checkpoint flow-sampler among {paths}")
    expect(listed[0].time.tzinfo is not None, f"time without zone: {listed[0].time!r}")
    return f"{len(paths)} checkpoints"


def list_user_checkpoints(walk: Flow) -> str:
    listed = walk.wait(_create_rest_client(walk).list_user_checkpoints(limit=50)).checkpoints
    paths = [checkpoint.tinker_path for checkpoint in listed]
    expect(walk["state_path"] in paths, f"{walk['state_path']} is not among {paths}")
    return f"{len(paths)} checkpoints"


def get_weights_info(walk: Flow) -> str:
    info = walk.wait(_create_rest_client(walk).get_weights_info_by_tinker_path(walk["state_path"]))
    expect(info.base_model == walk.base_model, f"base_model {info.base_model}")
    expect(info.is_lora and info.lora_rank == RANK, f"is_lora {info.is_lora}, lora_rank {info.lora_rank}")
    return f"lora_rank {info.lora_rank}"


def get_sampler(walk: Flow) -> str:
    sessions = walk.wait(_create_rest_client(walk).get_session(walk["session_id"]))
    sampler = walk.wait(_create_rest_client(walk).get_sampler(sessions.sampler_ids[0]))
    expect(sampler.base_model == walk.base_model, f"base_model {sampler.base_model}")
    return f"model_path {sampler.model_path}"


def list_sessions(walk: Flow) -> str:
    sessions = walk.wait(_create_rest_client(walk).list_sessions(limit=50)).sessions
    for session_id in sessions:
        session = walk.wait(_create_rest_client(walk).get_session(session_id))
        if walk["model_id"] in session.training_run_ids:
            walk.keep(session_id=session_id)
            return f"{len(sessions)} sessions"
    raise LookupError(f"no session among {sessions} has the training run {walk['model_id']}")


def get_session(walk: Flow) -> str:
    session = walk.wait(_create_rest_client(walk).get_session(walk["session_id"]))
    return f"{len(session.training_run_ids)} training runs, {len(session.sampler_ids)} samplers"


def get_archive_url(walk: Flow) -> str:
    if not hasattr(_create_rest_client(walk), "get_checkpoint_archive_url_from_tinker_path"):
        raise Skipped("SDK 0.36.0 and later have no archive")
    path = walk["sampler_path"]
    if "/sampler_weights/" not in path:
        path = path.replace("/flow-sampler", "/sampler_weights/flow-sampler")
    response = walk.wait(_create_rest_client(walk).get_checkpoint_archive_url_from_tinker_path(path))
    expect(response.url.startswith("http"), f"url {response.url}")
    expect(response.expires is not None, "expires is null")
    return "url and expires"


def set_ttl(walk: Flow) -> str:
    walk.wait(_create_rest_client(walk).set_checkpoint_ttl_from_tinker_path(walk["state_path"], 3600))
    expires = _find_checkpoint(walk, walk["state_path"]).expires_at
    expect(expires is not None, "expires_at is null after a ttl was set")
    walk.wait(_create_rest_client(walk).set_checkpoint_ttl_from_tinker_path(walk["state_path"], None))
    expires = _find_checkpoint(walk, walk["state_path"]).expires_at
    expect(expires is None, f"expires_at is {expires} after the ttl was removed")
    return "set and removed"


def save_state_with_ttl(walk: Flow) -> str:
    path = walk.wait(walk["training"].save_state("flow-short", ttl_seconds=3600)).path
    walk.keep(short_path=path)
    expires = _find_checkpoint(walk, path).expires_at
    expect(expires is not None, "expires_at is null")
    return path


def publish(walk: Flow) -> str:
    walk.wait(_create_rest_client(walk).publish_checkpoint_from_tinker_path(walk["state_path"]))
    expect(_find_checkpoint(walk, walk["state_path"]).public, "not public after publish")
    walk.keep(published=True)
    return "public"


def unpublish(walk: Flow) -> str:
    expect(walk["published"], "not published")
    walk.wait(_create_rest_client(walk).unpublish_checkpoint_from_tinker_path(walk["state_path"]))
    expect(not _find_checkpoint(walk, walk["state_path"]).public, "still public after unpublish")
    return "private"


def delete_checkpoint(walk: Flow) -> str:
    path = walk["state_path"]
    walk.wait(_create_rest_client(walk).delete_checkpoint_from_tinker_path(path))
    expect(_find_checkpoint(walk, path) is None, "still listed after delete")
    return "gone from the listing"


def save_weights_external(walk: Flow) -> str:
    """Check that the offered file holds arrays of the adapter."""
    if not hasattr(_create_rest_client(walk), "get_external_weights_urls"):
        raise Skipped("SDK before 0.28.1 saves nothing to download")
    path = walk.wait(walk["training"].save_weights_external("flow-external")).path
    response = walk.wait(_create_rest_client(walk).get_external_weights_urls(path))
    with urllib.request.urlopen(next(iter(response.urls.values())), timeout=walk.timeout_s) as file:
        size = len(file.read())
    expect(size > 0, "an empty file")
    return f"{size} bytes"


def copy_weights(walk: Flow) -> str:
    """Check that the copy samples like the original."""
    if not hasattr(_create_rest_client(walk), "copy_weights"):
        raise Skipped("SDK before 0.26.2 does not copy")
    path = walk.wait(_create_rest_client(walk).copy_weights(walk["state_path"], "flow-project"))
    training = walk.service.create_training_client_from_state(path)
    near(walk.loss(training), walk["state_loss"], 1e-4, "loss of the copy")
    return path


def user_metadata(walk: Flow) -> str:
    if "user_metadata" not in inspect.signature(walk.client.TrainingClient.save_state).parameters:
        raise Skipped("SDK before 0.27.2 saves no metadata")
    path = walk.wait(walk["training"].save_state("flow-metadata", user_metadata={"note": "kept"})).path
    metadata = _find_checkpoint(walk, path).user_metadata
    expect(metadata == {"note": "kept"}, f"user_metadata {metadata}")
    return "kept"


def overwrite(walk: Flow) -> str:
    training = walk["training"]
    if "overwrite" not in inspect.signature(walk.client.TrainingClient.save_state).parameters:
        raise Skipped("SDK before 0.20.0 does not overwrite")
    walk.wait(training.save_state("flow-over"))
    error = expect_refused("a name that is taken", lambda: walk.wait(training.save_state("flow-over")))
    walk.wait(training.save_state("flow-over", overwrite=True))
    return f"overwritten on request; else {error[:80]}"


def unknown_run_is_refused(walk: Flow) -> str:
    return expect_refused(
        "an unknown run", lambda: walk.wait(_create_rest_client(walk).get_training_run("no-such-run"))
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
