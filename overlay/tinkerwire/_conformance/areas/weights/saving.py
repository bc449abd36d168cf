"""Requirements on saving weights: paths, names, and the weights that a later load restores."""

from __future__ import annotations

from tinkerwire_generated.constants import TINKER_SCHEME

from ...checks.rejection import require_rejection
from ...checks.saved_weights import (
    TRAINED,
    expect_path,
    expect_restored,
    get_logprobs,
    make_large_steps,
    require_change,
    save_into_session,
    trained_checkpoint,
)
from ...requirement import Breakage, Feature
from ...subject.server import Server
from ...subject.training_model import make_datum
from ...violation import Violation, expect
from .area import AREA, LOSES_WORK


@AREA.must(
    1,
    contract=("save_weights 200", "SaveWeightsResponse.path"),
    remedy="End save_weights with a JSON object whose path begins with tinker:// and names the checkpoint.",
    needs=("MOD-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAVE, "raises an error on every save")],
)
async def save_returns_path(server: Server) -> None:
    """save_weights ends with a path that begins with tinker://."""
    model = await server.model()
    result = await model.save(model.save_weights_call(server.new_name()))
    expect_path(result.value.path, result.exchange)


@AREA.must(
    2,
    contract=("save_weights_for_sampler 200", "SaveWeightsForSamplerResponseInternal.path"),
    remedy="With path set, end save_weights_for_sampler with a path that begins with tinker://.",
    needs=("MOD-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAVE, "raises an error on every save for sampling")],
)
async def sampler_save_returns_path(server: Server) -> None:
    """save_weights_for_sampler with a name ends with a path that begins with tinker://."""
    model = await server.model()
    result = await model.save(model.save_for_sampler_call(server.new_name()))
    expect_path(result.value.path, result.exchange)


@AREA.must(
    3,
    contract=("load_weights 200", "LoadWeightsRequest.path"),
    remedy="Replace all weights of the model by those of the checkpoint.",
    needs=("WGT-001", *TRAINED),
    breaks=[LOSES_WORK],
)
async def load_restores_weights(server: Server) -> None:
    """load_weights restores the saved weights: a new model then returns the same log probabilities."""
    saved = await trained_checkpoint(server)
    await expect_restored(server, saved.path, "the log probabilities of the saved weights", saved.saved)


@AREA.must(
    4,
    contract=(
        "SaveWeightsForSamplerRequest.sampling_session_seq_id",
        "SaveWeightsForSamplerResponseInternal.sampling_session_id",
    ),
    remedy="With sampling_session_seq_id set, open a sampling session on the weights, and return its id.",
    needs=("MOD-001", "SMP-001"),
    breaks=[Breakage("0.3.0", None, Feature.SAVE, "raises an error in save_weights_and_get_sampling_client")],
)
async def sampler_save_opens_session(server: Server) -> None:
    """save_weights_for_sampler with sampling_session_seq_id ends with a sampling session that can be sampled from."""
    model = await server.model()
    sampler = await save_into_session(server, model)
    response = await sampler.sample()
    expect(len(response.sequences) == 1, "one sequence", len(response.sequences))


@AREA.must(
    5,
    contract="ParsedCheckpointTinkerPath",
    remedy="Name checkpoints for training tinker://RUN/weights/NAME, with the id of the model as RUN.",
    needs=("WGT-001",),
    breaks=[
        Breakage("0.3.0", None, Feature.MANAGE, "raises ValueError for the path"),
        Breakage("0.3.0", "0.5.1", Feature.SAVE, "cannot create a training client from the path"),
    ],
)
async def path_names_run(server: Server) -> None:
    """The path of a checkpoint for training is tinker://RUN/weights/NAME, with the id of the model and the name."""
    model = await server.model()
    name = server.new_name()
    result = await model.save(model.save_weights_call(name))
    expected = model.checkpoint_path("training", name)
    expect(result.value.path == expected, expected, result.value.path, result.exchange)


@AREA.should(
    6,
    contract="ParsedCheckpointTinkerPath",
    remedy="Name checkpoints for sampling tinker://RUN/sampler_weights/NAME, with the id of the model as RUN.",
    needs=("WGT-002",),
    breaks=[Breakage("0.3.0", None, Feature.MANAGE, "raises ValueError for the path")],
)
async def sampler_path_names_run(server: Server) -> None:
    """The path of a checkpoint for sampling is tinker://RUN/sampler_weights/NAME."""
    model = await server.model()
    name = server.new_name()
    path = await model.save_for_sampler(name)
    expected = model.checkpoint_path("sampler", name)
    expect(path == expected, expected, path, server.client.recent[-1])


@AREA.may(
    7,
    contract="SaveWeightsRequest.path",
    remedy="Invent a new name for a checkpoint if path is null.",
    needs=("WGT-001",),
)
async def name_is_optional(server: Server) -> None:
    """save_weights without a name gives each checkpoint a path of its own."""
    model = await server.model()
    first, second = [await model.save(model.save_weights_call(None)) for _ in range(2)]
    expect(first.value.path != second.value.path, "two different paths", first.value.path, second.exchange)


@AREA.must(
    8,
    contract="SaveWeightsRequest.overwrite",
    remedy="Refuse to save under a name that is in use, unless overwrite is true.",
    since="0.20.0",
    needs=("WGT-001",),
    breaks=[Breakage("0.20.0", None, Feature.SAVE, "replaces earlier weights without a warning")],
)
async def used_name_is_refused(server: Server) -> None:
    """save_weights under a name that is in use is refused without overwrite."""
    model = await server.new_model()
    name = server.new_name()
    await model.save_weights(name)
    await require_rejection(server, model.save_weights_call(name), "a name that is in use")


@AREA.should(
    9,
    contract="SaveWeightsRequest.overwrite",
    remedy="Replace the checkpoint of the same name if overwrite is true, and keep its path.",
    since="0.20.0",
    needs=("WGT-003",),
    breaks=[Breakage("0.20.0", None, Feature.SAVE, "cannot save again under a name, or resumes from older weights")],
)
async def overwrite_replaces(server: Server) -> None:
    """save_weights with overwrite replaces the checkpoint of the same name."""
    model = await server.new_model()
    name = server.new_name()
    first = await model.save_weights(name)
    before = await get_logprobs(model)
    await make_large_steps(model)
    result = await model.save(model.save_weights_call(name, overwrite=True))
    expect(result.value.path == first, first, result.value.path, result.exchange)
    after = await get_logprobs(model)
    require_change(before, after)
    await expect_restored(server, first, "the log probabilities of the later weights", after)


@AREA.should(
    10,
    contract="SaveWeightsRequest.path",
    remedy="Refuse names with a slash: clients split paths at slashes.",
    needs=("WGT-001",),
    breaks=[Breakage("0.3.0", None, Feature.MANAGE, "raises ValueError for the path, so that it cannot be deleted")],
)
async def slash_in_name_is_safe(server: Server) -> None:
    """save_weights refuses a name with a slash, or returns a path of three parts for it."""
    model = await server.new_model()
    result, exchange = await server.futures.attempt(model.save_weights_call(f"{server.new_name()}/a"))
    if result is None:
        return
    path = str(result.value.path)
    server.saved_paths.append(path)
    parts = path.removeprefix(TINKER_SCHEME).split("/")
    expect(len(parts) == 3, "a refusal, or a path of three parts", path, exchange)


@AREA.should(
    11,
    contract=(
        "SaveWeightsRequest.ttl_seconds",
        "SaveWeightsForSamplerRequest.ttl_seconds",
        "SaveWeightsExternalRequest",
    ),
    remedy="Refuse a negative ttl_seconds.",
    since="0.9.0",
    needs=("WGT-001",),
)
async def negative_ttl_is_refused(server: Server) -> None:
    """save_weights refuses a negative ttl_seconds."""
    model = await server.new_model()
    call = model.save_weights_call(server.new_name(), ttl_seconds=-3600)
    await require_rejection(server, call, "a negative ttl_seconds")


@AREA.must(
    12,
    contract=("save_weights", "SaveWeightsRequest.seq_id"),
    remedy="Run the operations of a model in the order of their seq_ids, saves included.",
    needs=("WGT-003",),
    breaks=[Breakage("0.3.0", None, Feature.SAVE, "saves weights without the last step, without an error")],
)
async def save_follows_earlier_steps(server: Server) -> None:
    """save_weights that is submitted before an earlier step has ended saves the weights after that step."""
    model = await server.new_model()
    before = await get_logprobs(model)
    calls = [
        model.forward_backward_call([make_datum()]),
        model.optim_step_call(),
        model.save_weights_call(server.new_name()),
    ]
    submissions = [await server.futures.submit(call) for call in calls]
    path = ""
    for submission in submissions:
        result = await server.futures.wait(submission)
        if result.failure is not None:
            raise Violation(f"the result of {submission.operation}", f"the failure {result.failure!r}", result.exchange)
        path = getattr(result.value, "path", "") or ""
    server.saved_paths.append(path)
    after = await get_logprobs(model)
    require_change(before, after)
    await expect_restored(server, path, "the log probabilities after the step", after)
