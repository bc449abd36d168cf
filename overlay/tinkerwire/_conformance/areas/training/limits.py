"""Requirements on sizes of batches, on rejected operations and on the end of models."""

from __future__ import annotations

from tinkerwire_base.conversion.versioning import parse_version
from tinkerwire_generated import models
from tinkerwire_generated.api.service import get_server_capabilities

from ...checks.breakages import UNREJECTED_BATCH
from ...checks.rejection import require_rejection
from ...checks.training_effect import OTHER_TOKENS, THIRD_TOKENS, expect_same
from ...requirement import Breakage, Feature
from ...subject.server import Server
from ...subject.training_model import TOKENS, TrainingModel, make_datum, without_input
from ...violation import NotApplicable, Violation, expect
from .area import AREA

ABSENT_MODEL = "no-such-model"
UNKNOWN_TOKEN = 10_000_000
LONG_INPUT = 1024
"""Tokens of the longest input that is tested."""
SDK_BATCHES = (("0.3.0", 128), ("0.7.0", 1024))
"""Datums in the largest request of the official SDK, from a version on."""


@AREA.must(
    40,
    contract=("forward_backward", "ClientConfigResponse.fwdbwd_max_chunk_len"),
    remedy="Accept batches of as many datums as client/config states, or as the official SDK sends: 1024, 128 before "
    "0.7.0. Split them into smaller ones yourself if you have to.",
    needs=("TRN-006",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "raises on large batches")],
)
async def large_batches_are_accepted(server: Server) -> None:
    """A batch may have as many datums as the official SDK sends in one request."""
    if server.contract.has_field("ClientConfigResponse", "fwdbwd_max_chunk_len"):
        count = server.client.dialect.config.fwdbwd_max_chunk_len
    else:
        version = parse_version(server.wire)
        count = [size for since, size in SDK_BATCHES if parse_version(since) <= version][-1]
    model = await server.model()
    data = [make_datum(), *[make_datum(OTHER_TOKENS)] * (count - 2), make_datum(THIRD_TOKENS)]
    rows = await model.logprobs(data)
    expect(len(rows) == count, f"{count} outputs", len(rows), server.client.recent[-1])
    edges = await model.logprobs([data[0], data[1], data[-1]])
    expect_same(server, edges, [rows[0], rows[1], rows[-1]], "the logprobs of the datums alone")


@AREA.should(
    41,
    since="0.18.2",
    contract=("forward_backward", "SupportedModel.max_context_length"),
    remedy="Train on inputs of up to max_context_length tokens, or state a smaller one.",
    needs=("TRN-004",),
    breaks=[Breakage("0.18.2", None, Feature.TRAIN, "raises on long examples")],
)
async def long_inputs_are_accepted(server: Server) -> None:
    """An example may have as many tokens as the model's max_context_length states, at least up to 1024."""
    capabilities, _ = await server.client.call(get_server_capabilities())
    name = await server.base_model()
    stated = [model.max_context_length for model in capabilities.supported_models if model.model_name == name]
    if not stated or not stated[0]:
        raise NotApplicable("the server states no max_context_length for the model")
    length = min(stated[0], LONG_INPUT)
    tokens = (TOKENS * (length // len(TOKENS) + 1))[:length]
    rows = await (await server.model()).logprobs([make_datum(tokens)])
    expect([len(row) for row in rows] == [length], f"{length} logprobs", len(rows[0]), server.client.recent[-1])


@AREA.must(
    42,
    contract=("forward_backward 404", "optim_step 404"),
    remedy="Reject operations on an unknown model_id with 404.",
    needs=("TRN-001", "TRN-003"),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "retries or polls for minutes in place of an error")],
)
async def unknown_model_is_rejected(server: Server) -> None:
    """Operations on an unknown model are rejected with a 4xx, or fail."""
    model = TrainingModel(server.client, ABSENT_MODEL, server.saved_paths)
    calls = model.forward_call([make_datum()]), model.forward_backward_call([make_datum()]), model.optim_step_call()
    for call in calls:
        await require_rejection(server, call, "an unknown model")


@AREA.should(
    43,
    contract=("forward_backward 404", "optim_step 404"),
    remedy="Use 404 for an unknown model_id, when the operation is submitted.",
    needs=("TRN-042",),
)
async def unknown_model_is_not_found(server: Server) -> None:
    """Operations on an unknown model are answered with 404, in an error of the contract."""
    model = TrainingModel(server.client, ABSENT_MODEL, server.saved_paths)
    for call in (model.forward_backward_call([make_datum()]), model.optim_step_call()):
        rejection = await require_rejection(server, call, "an unknown model")
        exchange = rejection.exchange
        expect(rejection.at_submission and exchange.status == 404, "404", exchange.describe(), exchange)
        server.client.require_contract(call.operation.name, exchange)


@AREA.must(
    44,
    contract=("forward_backward", "EncodedTextChunk.tokens"),
    remedy="Compare all tokens of the input and all targets with the size of the vocabulary before you compute.",
    needs=("TRN-003",),
    breaks=[UNREJECTED_BATCH],
)
async def unknown_tokens_are_rejected(server: Server) -> None:
    """A token outside the vocabulary is rejected, in the input as in target_tokens."""
    for datum in (
        make_datum([*TOKENS[:-1], UNKNOWN_TOKEN], targets=OTHER_TOKENS),
        make_datum(targets=[*TOKENS[:-1], UNKNOWN_TOKEN]),
    ):
        # Some servers reject every operation behind a rejected one.
        model = await server.new_model()
        await require_rejection(server, model.forward_call([datum]), f"the token {UNKNOWN_TOKEN}")


@AREA.should(
    45,
    contract=("forward_backward", "Datum.loss_fn_inputs"),
    remedy="Reject datums whose target_tokens or weights do not have one number for each token of the input.",
    needs=("TRN-003",),
    breaks=[UNREJECTED_BATCH],
)
async def lengths_must_agree(server: Server) -> None:
    """A datum with fewer targets or weights than tokens is rejected."""
    short = make_datum(TOKENS[:4]).loss_fn_inputs
    whole = make_datum().loss_fn_inputs
    for inputs, what in (
        (short, "4 targets for 8 tokens"),
        ({**whole, "weights": short["weights"]}, "4 weights for 8 targets"),
    ):
        model = await server.new_model()
        datum = models.Datum(model_input=models.ModelInput.from_ints(list(TOKENS)), loss_fn_inputs=inputs)
        await require_rejection(server, model.forward_backward_call([datum]), what)


@AREA.must(
    46,
    contract="Datum.loss_fn_inputs",
    remedy="Reject a datum of cross_entropy without target_tokens.",
    needs=("TRN-003",),
    breaks=[UNREJECTED_BATCH],
)
async def targets_are_required(server: Server) -> None:
    """A datum of cross_entropy without target_tokens is rejected."""
    model = await server.new_model()
    call = model.forward_backward_call([without_input(make_datum(), "target_tokens")])
    await require_rejection(server, call, "a datum without target_tokens")


@AREA.should(
    47,
    until="0.26.2",
    operations=("unload_model",),
    contract=("unload_model 200", "forward_backward 404"),
    remedy="Free the model on unload_model, and reject later operations on it with 404.",
    needs=("TRN-042",),
)
async def unloaded_model_is_gone(server: Server) -> None:
    """Operations on an unloaded model are rejected or fail."""
    model = await server.new_model()
    await model.forward([make_datum()])
    try:
        await server.futures.wait(await model.unload())
    except Violation as error:
        if error.exchange is not None and error.exchange.status in (404, 405, 501):
            raise NotApplicable("the server has no unload_model") from None
        raise
    for call in (model.forward_call([make_datum()]), model.optim_step_call()):
        await require_rejection(server, call, "an unloaded model")
