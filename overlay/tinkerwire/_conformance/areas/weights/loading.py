"""Requirements on loading weights: the optimizer, the life of checkpoints, and paths that are refused."""

from __future__ import annotations

from tinkerwire_generated import models
from tinkerwire_generated.api.weights import load_weights

from ...checks.differences import distance
from ...checks.rejection import require_rejection
from ...checks.saved_weights import (
    ABSENT_NAME,
    MALFORMED_PATHS,
    OTHER_TARGETS,
    delete,
    expect_equal,
    expect_restored,
    get_logprobs,
    make_large_steps,
    make_step,
    require_change,
    trained_checkpoint,
)
from ...requirement import Breakage, Feature
from ...subject.sampler import LOGPROB_TOLERANCE
from ...subject.server import LORA_RANK, Server
from ...violation import NotApplicable, expect
from .area import AREA, LOSES_WORK

CANNOT_LOAD = Breakage("0.3.0", None, Feature.SAVE, "cannot resume training")
IGNORES_REFUSAL = Breakage("0.3.0", None, Feature.SAVE, "trains on with other weights, or repeats the load for minutes")


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
    await expect_restored(server, path, "the log probabilities of the first save", first)


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
    await expect_restored(server, path, "the log probabilities of the saved weights", expected)


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
    path = model.checkpoint_path("training", ABSENT_NAME)
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
