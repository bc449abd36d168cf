"""Requirements on sampling from saved weights."""

from __future__ import annotations

from ..checks.saved_weights import (
    ABSENT_NAME,
    MALFORMED_PATHS,
    OTHER_TARGETS,
    TRAINED,
    delete,
    expect_equal,
    expect_no_sampler,
    expect_weights,
    get_logprobs,
    get_prompt_logprobs,
    make_large_steps,
    require_change,
    sample_from,
    save_into_session,
    trained_checkpoint,
)
from ..requirement import Area, Breakage, Feature
from ..subject.server import Server

AREA = Area("SWT", "sampler_weights", "Sampling from saved weights")


@AREA.must(
    1,
    contract=("create_sampling_session 200", "CreateSamplingSessionRequest.model_path"),
    remedy="Sample from the saved adapter, not from the base model.",
    needs=("WGT-002", "SMP-001", *TRAINED),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "samples from other weights than those it saved")],
)
async def sampler_uses_saved_weights(server: Server) -> None:
    """A sampling session on saved weights samples from these weights."""
    saved = await trained_checkpoint(server)
    path = await saved.model.save_for_sampler(server.new_name())
    await expect_weights(server, await server.new_sampler(path), saved.continued, saved.untrained)


@AREA.must(
    2,
    contract="SaveWeightsForSamplerRequest.sampling_session_seq_id",
    remedy="Open the sampling session on the weights of the model, not on the base model.",
    needs=("WGT-004", *TRAINED),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "samples from other weights than those it trained")],
)
async def session_uses_current_weights(server: Server) -> None:
    """A sampling session of save_weights_for_sampler samples from the weights of the model."""
    saved = await trained_checkpoint(server)
    sampler = await save_into_session(server, saved.model)
    await expect_weights(server, sampler, saved.continued, saved.untrained)


@AREA.must(
    3,
    contract="SaveWeightsForSamplerResponseInternal",
    remedy="Copy the weights when they are saved, so that later training does not change them.",
    needs=("SWT-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "samples from newer weights than those it saved")],
)
async def sampler_weights_stay(server: Server) -> None:
    """Weights that were saved for sampling stay as they were while the model trains on."""
    model = await server.new_model()
    await make_large_steps(model)
    path = await model.save_for_sampler(server.new_name())
    sampler = await server.new_sampler(path)
    before = await get_prompt_logprobs(sampler)
    trained = await get_logprobs(model)
    await make_large_steps(model, OTHER_TARGETS)
    require_change(trained, await get_logprobs(model))
    for later in (sampler, await server.new_sampler(path)):
        what = "the log probabilities from before the training"
        expect_equal(what, await get_prompt_logprobs(later), before, server.client.recent[-1])


@AREA.must(
    4,
    contract="SaveWeightsForSamplerRequest.sampling_session_seq_id",
    remedy="Copy the weights for the sampling session, so that later training does not change them.",
    needs=("SWT-002",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "samples from newer weights than those of the client")],
)
async def session_weights_stay(server: Server) -> None:
    """A sampling session of save_weights_for_sampler keeps its weights while the model trains on."""
    model = await server.new_model()
    await make_large_steps(model)
    sampler = await save_into_session(server, model)
    before = await get_prompt_logprobs(sampler)
    trained = await get_logprobs(model)
    await make_large_steps(model, OTHER_TARGETS)
    require_change(trained, await get_logprobs(model))
    what = "the log probabilities from before the training"
    expect_equal(what, await get_prompt_logprobs(sampler), before, server.client.recent[-1])


@AREA.must(
    5,
    contract="create_sampling_session 404",
    remedy="Answer create_sampling_session with a path that does not exist with 404.",
    needs=("MOD-001", "SMP-001"),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "samples from the base model in place of the weights")],
)
async def unknown_sampler_path_is_refused(server: Server) -> None:
    """A sampling session on weights that do not exist is refused, or its samples are."""
    model = await server.model()
    await expect_no_sampler(server, model.checkpoint_path("sampler", ABSENT_NAME))


@AREA.must(
    6,
    contract="create_sampling_session 422",
    remedy="Answer create_sampling_session with a text that is not a path with a 4xx.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "samples from the base model in place of the weights")],
)
async def malformed_sampler_path_is_refused(server: Server) -> None:
    """A sampling session on a text that is not a path is refused, or its samples are."""
    for path in MALFORMED_PATHS:
        await expect_no_sampler(server, path)


@AREA.should(
    7,
    contract=("create_sampling_session 422", "CreateSamplingSessionRequest.model_path"),
    remedy="Refuse create_sampling_session on weights of save_weights, or sample from them.",
    needs=("WGT-003", "SWT-001"),
)
async def training_weights_cannot_be_sampled(server: Server) -> None:
    """A sampling session on weights that were saved for training is refused, or samples from these weights."""
    saved = await trained_checkpoint(server)
    sampler, _ = await sample_from(server, saved.path)
    if sampler is not None:
        await expect_weights(server, sampler, saved.saved, saved.untrained)


@AREA.must(
    8,
    contract=("delete_checkpoint", "create_sampling_session 404"),
    remedy="Delete the weights with the checkpoint, and refuse new sampling sessions on it.",
    operations=("delete_checkpoint",),
    needs=("SWT-001",),
)
async def deleted_sampler_path_is_refused(server: Server) -> None:
    """A new sampling session on weights that were deleted is refused, or its samples are."""
    model = await server.model()
    path = await model.save_for_sampler(server.new_name())
    await delete(server, path)
    await expect_no_sampler(server, path)
