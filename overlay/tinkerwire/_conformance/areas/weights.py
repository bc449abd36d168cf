"""Requirements on weights: saving, and loading into models."""

from __future__ import annotations

from tinkerwire_generated import models
from tinkerwire_generated.api.weights import load_weights, save_weights, save_weights_for_sampler
from tinkerwire_generated.constants import CHECKPOINT_SEGMENTS, TINKER_SCHEME

from ..checks.rejection import require_rejection
from ..checks.saved_weights import (
    ABSENT_NAME,
    MALFORMED_PATHS,
    OTHER_TARGETS,
    TRAINED,
    delete,
    distance,
    expect_equal,
    expect_path,
    get_logprobs,
    make_large_steps,
    make_step,
    require_change,
    save,
    save_into_session,
    trained_checkpoint,
)
from ..requirement import Area, Breakage, Feature
from ..subject.sampler import LOGPROB_TOLERANCE
from ..subject.server import LORA_RANK, Server
from ..subject.training_model import make_datum
from ..violation import NotApplicable, Violation, expect

AREA = Area("WGT", "weights", "Weights: saving and loading")
LOSES_WORK = Breakage("0.3.0", None, Feature.SAVE, "resumes from other weights than it saved, without an error")
CANNOT_LOAD = Breakage("0.3.0", None, Feature.SAVE, "cannot resume training")
IGNORES_REFUSAL = Breakage("0.3.0", None, Feature.SAVE, "trains on with other weights, or repeats the load for minutes")


# --- saving -----------------------------------------------------------------------------------------------------------


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
    result = await save(model, server.new_name())
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
    body = models.SaveWeightsForSamplerRequest(model_id=model.id, path=server.new_name(), seq_id=model.take_seq_id())
    result = await server.futures.run(save_weights_for_sampler(body=body))
    server.saved_paths.append(result.value.path or "")
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
    model = await server.new_model()
    result = await model.load_weights(saved.path, optimizer=False)
    expect_equal("the log probabilities of the saved weights", await get_logprobs(model), saved.saved, result.exchange)


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
    result = await save(model, name)
    expected = f"{TINKER_SCHEME}{model.id}/{CHECKPOINT_SEGMENTS['training']}/{name}"
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
    expected = f"{TINKER_SCHEME}{model.id}/{CHECKPOINT_SEGMENTS['sampler']}/{name}"
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
    paths = []
    for _ in range(2):
        body = models.SaveWeightsRequest(model_id=model.id, seq_id=model.take_seq_id())
        result = await server.futures.run(save_weights(body=body))
        server.saved_paths.append(result.value.path)
        paths.append(result.value.path)
    expect(paths[0] != paths[1], "two different paths", paths[0], server.client.recent[-1])


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
    body = models.SaveWeightsRequest(model_id=model.id, path=name, seq_id=model.take_seq_id())
    await require_rejection(server, save_weights(body=body), "a name that is in use")


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
    result = await save(model, name, overwrite=True)
    expect(result.value.path == first, first, result.value.path, result.exchange)
    after = await get_logprobs(model)
    require_change(before, after)
    other = await server.new_model()
    loaded = await other.load_weights(first, optimizer=False)
    expect_equal("the log probabilities of the later weights", await get_logprobs(other), after, loaded.exchange)


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
    body = models.SaveWeightsRequest(model_id=model.id, path=f"{server.new_name()}/a", seq_id=model.take_seq_id())
    result, exchange = await server.futures.attempt(save_weights(body=body))
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
    body = models.SaveWeightsRequest(
        model_id=model.id, path=server.new_name(), ttl_seconds=-3600, seq_id=model.take_seq_id()
    )
    await require_rejection(server, save_weights(body=body), "a negative ttl_seconds")


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
    calls = [model.forward_backward_call([make_datum()]), model.optim_step_call()]
    body = models.SaveWeightsRequest(model_id=model.id, path=server.new_name(), seq_id=model.take_seq_id())
    submissions = [await server.futures.submit(call) for call in [*calls, save_weights(body=body)]]
    path = ""
    for submission in submissions:
        result = await server.futures.wait(submission)
        if result.failure is not None:
            raise Violation(f"the result of {submission.operation}", f"the failure {result.failure!r}", result.exchange)
        path = getattr(result.value, "path", "") or ""
    server.saved_paths.append(path)
    after = await get_logprobs(model)
    require_change(before, after)
    other = await server.new_model()
    loaded = await other.load_weights(path, optimizer=False)
    expect_equal("the log probabilities after the step", await get_logprobs(other), after, loaded.exchange)


# --- loading ----------------------------------------------------------------------------------------------------------


@AREA.must(
    13,
    contract="LoadWeightsRequest.optimizer",
    remedy="Save the state of the optimizer, its moments and its number of steps, and load it if optimizer is true.",
    since="0.6.0",
    needs=("WGT-003",),
    breaks=[Breakage("0.6.0", None, Feature.SAVE, "trains otherwise after a resume than without the break")],
)
async def load_with_optimizer_continues(server: Server) -> None:
    """After load_weights with optimizer, a step has the same effect as without the break."""
    saved = await trained_checkpoint(server)
    model = await server.new_model()
    result = await model.load_weights(saved.path, optimizer=True)
    continued = await make_step(model)
    expect_equal("the log probabilities of training without a break", continued, saved.continued, result.exchange)


@AREA.should(
    14,
    contract="LoadWeightsRequest.optimizer",
    remedy="Reset the optimizer if optimizer is false.",
    since="0.6.0",
    needs=("WGT-013",),
    breaks=[Breakage("0.6.0", None, Feature.SAVE, "keeps the state of an optimizer that it asked to leave out")],
)
async def load_without_optimizer_resets_it(server: Server) -> None:
    """After load_weights without optimizer, a step has the effect of a new optimizer."""
    saved = await trained_checkpoint(server)
    model = await server.new_model()
    result = await model.load_weights(saved.path, optimizer=False)
    continued = await make_step(model)
    difference = distance(continued, saved.continued)
    expected = "another step than with the state of the optimizer"
    expect(difference > LOGPROB_TOLERANCE, expected, f"the same to {difference:.1g}", result.exchange)


@AREA.must(
    15,
    contract=("LoadWeightsRequest.session_id", "LoadWeightsResponse.model_id"),
    remedy="Create the model SESSION:train:NUMBER if model_id is null, with the base model and rank of the weights.",
    since="0.24.1",
    needs=("WGT-003",),
    breaks=[Breakage("0.24.1", None, Feature.SAVE, "cannot create a training client from saved weights")],
)
async def load_creates_model(server: Server) -> None:
    """load_weights with a session and a model_seq_id creates a model with the saved weights."""
    if not server.client.dialect.creates_model_on_load:
        raise NotApplicable("the server does not have the flag create_model_via_load_weights")
    saved = await trained_checkpoint(server)
    plan = await server.create_model_request()
    body = models.LoadWeightsRequest(
        session_id=plan.session_id, model_seq_id=plan.model_seq_id, path=saved.path, optimizer=False
    )
    result = await server.futures.run(load_weights(body=body))
    # Official clients build this id themselves.
    model = server.adopt(f"{plan.session_id}:train:{plan.model_seq_id}")
    info = await model.get_info()
    expect(info.model_id == model.id, model.id, info.model_id, result.exchange)
    expect_equal("the log probabilities of the saved weights", await get_logprobs(model), saved.saved, result.exchange)


@AREA.may(
    16,
    contract="load_weights",
    remedy="Allow load_weights at any time, not only as the first operation of a model, for clients that go back.",
    needs=("WGT-003",),
    breaks=[Breakage("0.3.0", None, Feature.SAVE, "cannot go back to earlier weights in the middle of training")],
)
async def load_after_training(server: Server) -> None:
    """load_weights into a model that has trained replaces its weights."""
    saved = await trained_checkpoint(server)
    model = await server.new_model()
    await make_large_steps(model)
    result = await model.load_weights(saved.path, optimizer=False)
    expect_equal("the log probabilities of the saved weights", await get_logprobs(model), saved.saved, result.exchange)


@AREA.must(
    17,
    contract="SaveWeightsResponse.path",
    remedy="Copy the weights when they are saved, and keep each checkpoint in a file of its own.",
    needs=("WGT-003",),
    breaks=[LOSES_WORK],
)
async def checkpoints_are_independent(server: Server) -> None:
    """A checkpoint keeps its weights while its model trains on and is saved again."""
    model = await server.new_model()
    await make_large_steps(model)
    first = await get_logprobs(model)
    path = await model.save_weights(server.new_name())
    await make_large_steps(model, OTHER_TARGETS)
    await model.save_weights(server.new_name())
    require_change(first, await get_logprobs(model))
    other = await server.new_model()
    result = await other.load_weights(path, optimizer=False)
    expect_equal("the log probabilities of the first save", await get_logprobs(other), first, result.exchange)


@AREA.must(
    18,
    contract=("unload_model", "load_weights"),
    remedy="Keep the checkpoints of a model that is unloaded.",
    operations=("unload_model",),
    needs=("WGT-003",),
    breaks=[CANNOT_LOAD],
)
async def checkpoint_outlives_model(server: Server) -> None:
    """A checkpoint can be loaded after its model was unloaded."""
    model = await server.new_model()
    await make_large_steps(model)
    expected = await get_logprobs(model)
    path = await model.save_weights(server.new_name())
    await server.futures.wait(await model.unload())
    other = await server.new_model()
    result = await other.load_weights(path, optimizer=False)
    expect_equal("the log probabilities of the saved weights", await get_logprobs(other), expected, result.exchange)


@AREA.must(
    19,
    contract="load_weights 404",
    remedy="Answer load_weights of a checkpoint that does not exist with 404, or with a failure of category user.",
    needs=("MOD-001",),
    breaks=[IGNORES_REFUSAL],
)
async def unknown_path_is_refused(server: Server) -> None:
    """load_weights of a checkpoint that does not exist is refused."""
    model = await server.new_model()
    path = f"{TINKER_SCHEME}{model.id}/{CHECKPOINT_SEGMENTS['training']}/{ABSENT_NAME}"
    await require_rejection(server, model.load_weights_call(path), "an unknown path")


@AREA.must(
    20,
    contract="load_weights 422",
    remedy="Answer load_weights of a text that is not a path with a 4xx.",
    needs=("MOD-001",),
    breaks=[IGNORES_REFUSAL],
)
async def malformed_path_is_refused(server: Server) -> None:
    """load_weights of a text that is not a path is refused."""
    for path in MALFORMED_PATHS:
        await require_rejection(server, (await server.new_model()).load_weights_call(path), f"the path {path}")


@AREA.must(
    21,
    contract=("delete_checkpoint", "load_weights 404"),
    remedy="Delete the weights with the checkpoint, and refuse their path from then on.",
    operations=("delete_checkpoint",),
    needs=("WGT-003",),
)
async def deleted_checkpoint_is_refused(server: Server) -> None:
    """load_weights of a checkpoint that was deleted is refused."""
    model = await server.new_model()
    path = await model.save_weights(server.new_name())
    await delete(server, path)
    call = (await server.new_model()).load_weights_call(path)
    await require_rejection(server, call, "the path of a deleted checkpoint")


@AREA.should(
    22,
    contract=("load_weights 422", "SaveWeightsForSamplerRequest"),
    remedy="Refuse load_weights of weights for sampling: they have no state of the optimizer.",
    needs=("WGT-002",),
)
async def sampler_weights_cannot_be_loaded(server: Server) -> None:
    """load_weights of weights that were saved for sampling is refused."""
    path = await (await server.model()).save_for_sampler(server.new_name())
    call = (await server.new_model()).load_weights_call(path)
    await require_rejection(server, call, "weights for sampling")


@AREA.must(
    23,
    contract=("load_weights", "LoraConfig.rank"),
    remedy="Refuse load_weights into a model of another rank, or fit the weights into it without a loss.",
    needs=("WGT-003",),
    breaks=[LOSES_WORK],
)
async def other_rank_is_refused(server: Server) -> None:
    """load_weights into a model of another rank is refused, or restores the weights completely."""
    saved = await trained_checkpoint(server)
    model = await server.new_model(rank=LORA_RANK // 2)
    result, exchange = await server.futures.attempt(model.load_weights_call(saved.path))
    if result is not None:
        expect_equal("a refusal, or the saved weights", await get_logprobs(model), saved.saved, exchange)
