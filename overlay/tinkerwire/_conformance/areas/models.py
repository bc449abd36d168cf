"""Requirements on models: creation, description, options, independence, the end."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs

from tinkerwire_base.call import Call
from tinkerwire_generated import models
from tinkerwire_generated.api.runs import get_training_run
from tinkerwire_generated.api.training import create_model, get_info

from ..checks.differences import largest_difference
from ..client.futures import Result
from ..requirement import Area, Breakage, Feature
from ..subject.sampler import LOGPROB_TOLERANCE
from ..subject.server import Server
from ..subject.training_model import TrainingModel, make_datum
from ..violation import Blocked, NotApplicable, Violation, expect

AREA = Area("MOD", "models", "Models: creation, description, options and the end")
CANNOT_CREATE_MODEL = Breakage("0.3.0", None, Feature.TRAIN, "cannot create a training client")
UNKNOWN_MODEL = "no-such-model"
SMALL_RANK = 2
MIN_DIFFERENCE = 1e-6
"""Difference of log probabilities that shows another computation; a large step makes it far greater."""
LEARNING_RATE = 0.05
MODEL_METADATA = {"purpose": "conformance"}


@AREA.must(
    1,
    contract=("create_model 200", "CreateModelResponse.model_id"),
    remedy="Finish the future of create_model with a JSON object that has model_id, a string that is not empty.",
    needs=("SES-001",),
    breaks=[CANNOT_CREATE_MODEL],
)
async def model_can_be_created(server: Server) -> None:
    """A model can be created, and the result has a model_id that is not empty."""
    result = await _create(server)
    expect(bool(result.value.model_id), "a model_id that is not empty", "an empty one", result.exchange)


@AREA.must(
    2,
    contract=("get_info 200", "GetInfoResponse.model_id"),
    remedy="Answer get_info for a model with its description, without a future.",
    needs=("MOD-001",),
    breaks=[Breakage("0.38.0", None, Feature.TRAIN, "cannot create a training client, which asks for it")],
)
async def model_has_info(server: Server) -> None:
    """A model is described by get_info under its id."""
    model = await server.model()
    info, exchange = await server.client.call(get_info(body=models.GetInfoRequest(model_id=model.id)))
    expect(info.model_id == model.id, model.id, info.model_id, exchange)


@AREA.should(
    3,
    contract=("GetInfoResponse.model_data", "ModelData.model_name"),
    remedy="Return the name of the base model in model_data.model_name of get_info: clients load its tokenizer.",
    needs=("MOD-002",),
)
async def info_names_base_model(server: Server) -> None:
    """The description of a model names its base model."""
    model = await server.model()
    info, exchange = await server.client.call(get_info(body=models.GetInfoRequest(model_id=model.id)))
    name = await server.base_model()
    expect(name in (info.model_data.model_name, info.model_name), name, info.model_data.model_name, exchange)


@AREA.should(
    4,
    contract=("LoraConfig.rank", "GetInfoResponse.lora_rank"),
    remedy="Create the adapter with the rank of lora_config, and return it in lora_rank of get_info.",
    needs=("MOD-002",),
)
async def rank_is_honoured(server: Server) -> None:
    """A model has the rank that was asked for, if its description names one."""
    model = await server.new_model(rank=SMALL_RANK)
    info, exchange = await server.client.call(get_info(body=models.GetInfoRequest(model_id=model.id)))
    expect(info.lora_rank in (None, SMALL_RANK), f"lora_rank {SMALL_RANK}", info.lora_rank, exchange)
    if info.lora_rank is None:
        raise NotApplicable("get_info has no lora_rank")


@AREA.must(
    5,
    contract="CreateModelResponse.model_id",
    remedy="Give each model an id of its own, also if two are created at the same time.",
    needs=("MOD-001",),
)
async def concurrent_models_have_different_ids(server: Server) -> None:
    """Two models that are created at the same time have different ids."""
    first, second = await asyncio.gather(_create(server), _create(server))
    different = first.value.model_id != second.value.model_id
    expect(different, "two different ids", first.value.model_id, second.exchange)


@AREA.should(
    7,
    contract="create_model",
    remedy="Start each adapter so that it adds nothing, with one of its two matrices at zero.",
    needs=("MOD-001",),
)
async def new_model_equals_base_model(server: Server) -> None:
    """Two new models with different seeds compute the same, as an adapter adds nothing before its first step."""
    first, second = await server.new_model(seed=1), await server.new_model(seed=2)
    one, other = await _logprobs(first), await _logprobs(second)
    expect(
        largest_difference(one, other) < LOGPROB_TOLERANCE,
        f"logprobs as of seed 1: {one[0][:4]}...",
        f"{other[0][:4]}...",
    )


@AREA.should(
    8,
    contract="LoraConfig.seed",
    remedy="Draw the first values of an adapter from the seed of lora_config only.",
    needs=("MOD-001",),
)
async def equal_seeds_give_equal_models(server: Server) -> None:
    """Two models with the same seed and the same training compute the same."""
    one, other = await _trained(server, seed=5), await _trained(server, seed=5)
    expect(
        largest_difference(one, other) < LOGPROB_TOLERANCE, f"the same logprobs: {one[0][:4]}...", f"{other[0][:4]}..."
    )


@AREA.should(
    9,
    contract="LoraConfig.seed",
    remedy="Use the seed of lora_config: another seed has to draw other values.",
    needs=("MOD-008",),
)
async def seed_is_honoured(server: Server) -> None:
    """Two models with different seeds and the same training compute something different."""
    one, other = await _trained(server, seed=5), await _trained(server, seed=6)
    expect(largest_difference(one, other) > MIN_DIFFERENCE, "other logprobs than those of another seed", "the same")


@AREA.should(
    10,
    contract=("LoraConfig.train_mlp", "LoraConfig.train_attn", "LoraConfig.train_unembed"),
    remedy="Leave out the adapters of the layers that train_mlp, train_attn and train_unembed exclude.",
    needs=("MOD-008",),
    max_s=240,
)
async def excluded_layers_are_not_trained(server: Server) -> None:
    """A model without adapters on some kinds of layers trains to something different from one with all."""
    everything = await _trained(server, seed=5)
    tested = 0
    for name in ("train_mlp", "train_attn", "train_unembed"):
        try:
            partial = await _trained(server, seed=5, **{name: False})
        except Blocked:
            # A server may lack a choice of layers, if it rejects such models.
            continue
        tested += 1
        expect(
            largest_difference(everything, partial) > MIN_DIFFERENCE, f"other logprobs with {name}=false", "the same"
        )
    if not tested:
        raise NotApplicable("the server rejects models without adapters on some layers")


@AREA.must(
    11,
    contract="create_model 404",
    remedy="Reject a base_model that the server does not have, with a 4xx or a failed future.",
    needs=("SES-001",),
)
async def unknown_base_model_is_rejected(server: Server) -> None:
    """A model of an unknown base model is rejected, at once or as the failure of its future."""
    request = await server.create_model_request()
    body = attrs.evolve(request, base_model="no-such/base-model")
    await _expect_refusal(server, create_model(body=body))


@AREA.should(
    12,
    contract="get_info 404",
    remedy="Answer get_info for a model that does not exist with 404.",
    needs=("MOD-002",),
)
async def unknown_model_is_not_found(server: Server) -> None:
    """An unknown model has no description."""
    exchange = await server.client.send_call(get_info(body=models.GetInfoRequest(model_id=UNKNOWN_MODEL)))
    expect(exchange.is_client_error, "404", exchange.describe(), exchange)


@AREA.should(
    14,
    contract=("CreateModelRequest.model_seq_id", "create_model 200"),
    remedy="Return the first future, or its model, if create_model is repeated with the same idempotency key.",
    needs=("MOD-001",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "leaves a second model behind after a lost response")],
)
async def repeated_creation_makes_one_model(server: Server) -> None:
    """A creation that is resent with its idempotency key and model_seq_id leads to the same model."""
    request = server.client.encode(create_model(body=await server.create_model_request()))
    first = await server.futures.wait(await server.futures.submit_request("create_model", request))
    second = await server.futures.wait(await server.futures.submit_request("create_model", request))
    for result in (first, second):
        if result.failure is not None:
            raise Violation("a model", f"the failure {result.failure!r}", result.exchange)
    ids = {first.value.model_id, second.value.model_id}
    for model_id in ids:
        server.adopt(model_id)
    expect(len(ids) == 1, f"the model {first.value.model_id} again", second.value.model_id, second.exchange)


@AREA.should(
    15,
    contract="LoraConfig.rank",
    remedy="Reject a rank below 1, with 422 and the name of the field.",
    needs=("MOD-001",),
)
async def rank_below_one_is_rejected(server: Server) -> None:
    """A model of rank 0 is rejected, at once or as the failure of its future."""
    await _expect_refusal(server, create_model(body=await server.create_model_request(rank=0)))


@AREA.should(
    16,
    contract=("CreateModelRequest.user_metadata", "TrainingRun.user_metadata"),
    remedy="Store the user_metadata of create_model, and return it from get_training_run.",
    operations=("get_training_run",),
    needs=("MOD-001",),
)
async def model_keeps_metadata(server: Server) -> None:
    """A model keeps the metadata of its creation."""
    request = attrs.evolve(await server.create_model_request(), user_metadata=MODEL_METADATA)
    result = await server.futures.run(create_model(body=request))
    model = server.adopt(result.value.model_id)
    run, exchange = await server.client.call(get_training_run(model.id))
    expect(run.user_metadata == MODEL_METADATA, str(MODEL_METADATA), run.user_metadata, exchange)


@AREA.should(
    17,
    since="0.29.1",
    contract=("CreateModelRequest.optimizer_config", "GetInfoResponse.optimizer_config"),
    remedy="Train a model with AdamW if create_model has no optimizer_config, and return that from get_info.",
    needs=("MOD-002",),
)
async def default_optimizer_is_adamw(server: Server) -> None:
    """A model can be created without optimizer_config, and has AdamW."""
    request = await server.create_model_request()
    body = {
        "session_id": request.session_id,
        "model_seq_id": request.model_seq_id,
        "base_model": request.base_model,
        "lora_config": {"rank": 4},
    }
    plain = server.client.json_request("POST", "create_model", body)
    result = await server.futures.wait(await server.futures.submit_request("create_model", plain))
    expect(result.failure is None, "a model", result.failure, result.exchange)
    model = server.adopt(result.value.model_id)
    info, exchange = await server.client.call(get_info(body=models.GetInfoRequest(model_id=model.id)))
    expect(info.optimizer_config.type == "adamw", "adamw", info.optimizer_config.type, exchange)


@AREA.should(
    18,
    contract=("unload_model 200", "UnloadModelResponse"),
    remedy="Free the memory of a model on unload_model, and finish its future.",
    operations=("unload_model",),
    until="0.26.2",
    needs=("MOD-001",),
)
async def model_can_be_unloaded(server: Server) -> None:
    """A model can be unloaded, and the future of that ends with a result."""
    result = await _create(server)
    model = server.adopt(result.value.model_id)
    ended = await server.futures.wait(await model.unload())
    expect(ended.failure is None, "a result", ended.failure, ended.exchange)


async def _create(server: Server) -> Result:
    """Create a model that is unloaded after the test."""
    result = await server.create_model()
    server.adopt(result.value.model_id)
    return result


async def _train(model: TrainingModel) -> None:
    """Take one large step; raise Blocked if that fails, which is about training."""
    try:
        await model.forward_backward([make_datum()])
        await model.optim_step(learning_rate=LEARNING_RATE)
    except Violation as error:
        raise Blocked(f"a training step: {error}", error.exchange) from error


async def _logprobs(model: TrainingModel) -> list[list[float]]:
    """Return the logprobs of a model; raise Blocked without them."""
    try:
        return await model.logprobs()
    except Violation as error:
        raise Blocked(f"logprobs of a model: {error}", error.exchange) from error


async def _expect_refusal(server: Server, call: Call[models.UntypedAPIFuture]) -> None:
    """Raise Violation if the server does what a call asks for."""
    result, exchange = await server.futures.attempt(call)
    if result is not None:
        if call.operation.name == "create_model":
            server.adopt(result.value.model_id)
        raise Violation("a 4xx, or the failure of the future", "a result", exchange)


async def _trained(server: Server, **lora: Any) -> list[list[float]]:
    """Return the logprobs of a new model after two steps, of which the first moves only one matrix.

    Raises:
        Blocked: the steps have changed nothing, so that no choice of adapters can be seen.
    """
    model = await server.new_model(**lora)
    before = await _logprobs(model)
    for _ in range(2):
        await _train(model)
    after = await _logprobs(model)
    if largest_difference(before, after) <= MIN_DIFFERENCE:
        raise Blocked("two steps did not change the logprobs of a model")
    return after
