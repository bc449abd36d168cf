"""Mutations of saving and loading weights."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from tinkerwire._server.engine.training import LoraModel
from tinkerwire._server.handlers import sampling
from tinkerwire._server.handlers import weights as handlers
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.storage import checkpoints
from tinkerwire._server.storage.checkpoint_paths import CheckpointKey
from tinkerwire._server.storage.checkpoints import Checkpoints

from . import patches
from .mutation import Group

GROUP = Group("Weights")
POLL = "retrieve_future"
NANO = "tinkerwire/byte-nano"


def _change_path(change: Any) -> None:
    patches.change_field(POLL, "path", lambda path: path and change(path))


def _replace_save(change: Any) -> None:
    patches.replace(
        Checkpoints, "save", lambda original: lambda self, *args, **settings: change(original, self, *args, **settings)
    )


@GROUP.mutation("WGT-001", "WGT-002")
def path_is_file() -> None:
    """The paths of checkpoints begin with file:///."""
    _change_path(lambda path: path.replace("tinker://", "file:///"))


@GROUP.mutation("WGT-003")
def nothing_loaded() -> None:
    """load_weights changes nothing."""
    LoraModel.load_arrays = lambda *_, **__: None  # type: ignore[assignment,method-assign]


@GROUP.mutation("WGT-004")
def no_sampling_session_id() -> None:
    """save_weights_for_sampler ends without a sampling_session_id."""
    patches.change_field(POLL, "sampling_session_id", lambda _: None)


@GROUP.mutation("CKP-019", "DLD-004", "WGT-003", "WGT-005", "WGT-006")
def path_of_another_run() -> None:
    """The paths of checkpoints name another run."""
    _change_path(lambda path: re.sub("tinker://[^/]*", "tinker://other", path))


@GROUP.mutation("WGT-007", "WGT-008")
def unnamed_checkpoints_share_a_name() -> None:
    """Checkpoints without a name replace each other."""

    def save(original: Any, self: Any, run: Any, kind: Any, name: Any, *args: Any, **settings: Any) -> Any:
        return original(self, run, kind, name or "latest", *args, **{**settings, "overwrite": True})

    _replace_save(save)


@GROUP.mutation("WGT-008")
def always_overwritten() -> None:
    """A checkpoint replaces another one of its name without being asked to."""
    _replace_save(lambda original, self, *args, **settings: original(self, *args, **{**settings, "overwrite": True}))


@GROUP.mutation("WGT-009")
def overwrite_keeps_old() -> None:
    """save_weights with overwrite keeps the old checkpoint."""

    def save(original: Any, self: Any, run: Any, kind: Any, name: Any, *args: Any, **settings: Any) -> Any:
        key = CheckpointKey(run.run_id, kind, name)
        if settings.get("overwrite") and key in self._records:
            return key
        return original(self, run, kind, name, *args, **settings)

    _replace_save(save)


@GROUP.mutation("WGT-010")
def slashes_in_names() -> None:
    """A name with a slash leads to a path of four parts."""
    handlers.validate_name = lambda _, name: name.replace("/", "_")  # type: ignore[assignment]
    _change_path(lambda path: re.sub("_a$", "/a", path))


@GROUP.mutation("WGT-011", "CKP-016")
def ttl_unchecked() -> None:
    """A negative ttl_seconds is accepted."""
    from tinkerwire._server.handlers import runs  # noqa: PLC0415

    handlers.validate_ttl = lambda ttl: ttl  # type: ignore[assignment]
    runs.validate_ttl = lambda ttl: ttl  # type: ignore[assignment]


@GROUP.mutation("WGT-003")
def saved_before_last_step() -> None:
    """save_weights saves the weights before the last step."""
    earlier: dict[int, Any] = {}
    state_arrays = LoraModel.state_arrays

    def make(original: Any) -> Any:
        def optim_step(self: Any, *args: Any, **settings: Any) -> Any:
            earlier[id(self)] = state_arrays(self)
            return original(self, *args, **settings)

        return optim_step

    patches.replace(LoraModel, "optim_step", make)
    LoraModel.state_arrays = lambda self: earlier.get(id(self)) or state_arrays(self)  # type: ignore[method-assign]


def _change_loading(optimizer: bool) -> None:
    patches.replace(
        LoraModel, "load_arrays", lambda original: lambda self, arrays, _: original(self, arrays, optimizer)
    )


@GROUP.mutation("WGT-013")
def optimizer_never_loaded() -> None:
    """load_weights never loads the state of the optimizer."""
    _change_loading(optimizer=False)


@GROUP.mutation("WGT-014")
def optimizer_always_loaded() -> None:
    """load_weights always loads the state of the optimizer."""
    _change_loading(optimizer=True)


@GROUP.mutation("DLD-007", "WGT-015", "WGT-016", "WGT-017", "WGT-019", "WGT-021", "WGT-023")
def created_without_weights() -> None:
    """load_weights that creates a model loads no weights."""

    def make(original: Any) -> Any:
        def create(state: Any, request: Any) -> Any:
            handlers._load = lambda *_, **__: None  # type: ignore[assignment]
            return original(state, request)

        return create

    patches.replace(handlers, "_create_from_checkpoint", make)


@GROUP.mutation("WGT-017")
def checkpoints_share_a_file() -> None:
    """A save changes the earlier checkpoints of the run."""

    def save(original: Any, self: Any, run: Any, kind: Any, name: Any, arrays: Any, *args: Any, **settings: Any) -> Any:
        key = original(self, run, kind, name, arrays, *args, **settings)
        for record in self._records.values():
            if record.key.run_id == run.run_id and record.key.kind == kind:
                checkpoints.write_arrays(self._record_arrays_path(record), arrays)
        return key

    _replace_save(save)


@GROUP.mutation("WGT-019", "WGT-021")
def unknown_path_ignored() -> None:
    """load_weights of a checkpoint that does not exist changes nothing, and succeeds."""

    def make(original: Any) -> Any:
        def load(state: Any, model: Any, key: Any, **settings: Any) -> None:
            try:
                original(state, model, key, **settings)
            except HttpError:
                return

        return load

    patches.replace(handlers, "_load", make)


@GROUP.mutation("BAD-018", "BAD-020", "SWT-006", "WGT-020")
def invalid_path_crashes() -> None:
    """A text that is not a path is answered with 500."""

    def make(original: Any) -> Any:
        def read_path(field: Any, path: str) -> Any:
            if not path.startswith("tinker://") or ".." in path:
                raise HttpError(500, "mutated")
            return original(field, path)

        return read_path

    patches.replace(handlers, "read_path", make)
    sampling.read_path = handlers.read_path


@GROUP.mutation("WGT-021", "SWT-008")
def deleted_weights_readable() -> None:
    """Deleted checkpoints can be loaded."""
    kept: dict[Any, Any] = {}
    read_arrays, delete, get = Checkpoints.read_arrays, Checkpoints.delete, Checkpoints.get

    def delete_but_keep(self: Any, key: Any) -> Any:
        kept[key] = (read_arrays(self, key), get(self, key))
        return delete(self, key)

    Checkpoints.delete = delete_but_keep  # type: ignore[method-assign]
    Checkpoints.read_arrays = lambda self, key: (  # type: ignore[method-assign]
        kept[key][0] if key in kept else read_arrays(self, key)
    )
    Checkpoints.get = lambda self, key: kept[key][1] if key in kept else get(self, key)  # type: ignore[method-assign]


@GROUP.mutation("WGT-022")
def any_kind_loaded() -> None:
    """load_weights loads weights that were saved for sampling."""
    handlers._read_training_path = lambda path: handlers.read_path("path", path)  # type: ignore[assignment]

    def make(original: Any) -> Any:
        def load_arrays(self: Any, arrays: Any, optimizer: Any) -> None:
            try:
                original(self, arrays, optimizer)
            except Exception:
                self._params = {name: arrays[name] for name in self._params}

        return load_arrays

    patches.replace(LoraModel, "load_arrays", make)


@GROUP.mutation("WGT-023")
def other_rank_ignored() -> None:
    """load_weights into a model of another rank changes nothing, and succeeds."""

    def make(original: Any) -> Any:
        def load(state: Any, model: Any, key: Any, **settings: Any) -> None:
            if state.runs.get(key.run_id).rank == model.run.rank:
                original(state, model, key, **settings)

        return load

    patches.replace(handlers, "_load", make)


def _change_session(change: Any) -> None:
    patches.replace(sampling, "_open_session", lambda original: lambda *args: change(original, *args))


@GROUP.mutation("LGP-001", "LGP-003", "SWT-001")
def path_samples_base() -> None:
    """Sampling sessions on saved weights sample from the base model."""

    def change(original: Any, *args: Any) -> Any:
        session = original(*args)
        if session.model_path:
            session.weights.adapter = None
        return session

    _change_session(change)


@GROUP.mutation("SWT-002")
def saved_session_samples_base() -> None:
    """The sampling session of save_weights_for_sampler samples from the base model."""

    def make(original: Any) -> Any:
        def open_sampler(state: Any, model: Any, sampler: Any) -> Any:
            result = original(state, model, sampler)
            sampler.weights.adapter = None
            return result

        return open_sampler

    patches.replace(handlers, "_open_sampler", make)


def _follow_steps() -> dict[int, list[Any]]:
    """Let the sampling sessions of save_weights_for_sampler follow each step of their models.

    Returns:
        The weights that follow a model, by the id of its engine; further ones can be added.
    """
    followers: dict[int, list[Any]] = {}

    def follow_saved(original: Any) -> Any:
        def open_sampler(state: Any, model: Any, sampler: Any) -> Any:
            result = original(state, model, sampler)
            followers.setdefault(id(model.engine), []).append(sampler.weights)
            return result

        return open_sampler

    def make_step(original: Any) -> Any:
        def optim_step(self: Any, *args: Any, **settings: Any) -> Any:
            result = original(self, *args, **settings)
            for weights in followers.get(id(self), []):
                weights.adapter = self.adapter_snapshot()
            return result

        return optim_step

    patches.replace(handlers, "_open_sampler", follow_saved)
    patches.replace(LoraModel, "optim_step", make_step)
    return followers


@GROUP.mutation("SWT-004")
def sampler_follows_model() -> None:
    """The sampling session of save_weights_for_sampler follows each step of the model."""
    _follow_steps()


@GROUP.mutation("SPL-003", "SWT-005", "SWT-006", "SWT-007", "SWT-008")
def unknown_weights_are_base() -> None:
    """Sampling sessions on weights that do not exist sample from the base model."""

    def change(original: Any, state: Any, session_id: Any, base_model: Any, path: Any) -> Any:
        try:
            return original(state, session_id, base_model, path)
        except HttpError:
            return original(state, session_id, NANO, None)

    _change_session(change)


@GROUP.mutation("WGT-012")
def saved_at_submission() -> None:
    """save_weights saves the weights of the moment at which it is submitted, before earlier operations have run."""
    state_arrays = LoraModel.state_arrays
    waiting: dict[int, list[Any]] = {}

    def make(original: Any) -> Any:
        def save(state: Any, request: Any) -> Any:
            model = state.models.get(request.body.model_id)
            waiting.setdefault(id(model.engine), []).append(state_arrays(model.engine))
            return original(state, request)

        return save

    def arrays_of(self: Any) -> Any:
        taken = waiting.get(id(self))
        return taken.pop(0) if taken else state_arrays(self)

    patches.replace_handler("save_weights", make)
    LoraModel.state_arrays = arrays_of  # type: ignore[method-assign]


@GROUP.mutation("WGT-018", wire="0.16.1")
def unload_deletes() -> None:
    """unload_model deletes the checkpoints of the model."""
    stores: list[Any] = []

    def make(original: Any) -> Any:
        def create(self: Any, *args: Any, **settings: Any) -> None:
            original(self, *args, **settings)
            stores.append(self)

        return create

    def delete(request: Any) -> Any:
        body = patches.read(request.content) or {}
        for record in list(stores[0].newest_first(str(body.get("model_id")))):
            stores[0].delete(record.key)
        return request

    patches.replace(Checkpoints, "__init__", make)
    patches.change_request("unload_model", delete)


@GROUP.mutation("SWT-003", "SWT-004")
def samplers_follow_models() -> None:
    """All sampling sessions on weights of a model follow its steps."""
    followers = _follow_steps()

    def follow_path(original: Any, state: Any, session_id: Any, base_model: Any, path: Any) -> Any:
        session = original(state, session_id, base_model, path)
        if path:
            with suppress(HttpError):
                model = state.models.get(sampling.read_path("path", path).run_id)
                followers.setdefault(id(model.engine), []).append(session.weights)
        return session

    _change_session(follow_path)
