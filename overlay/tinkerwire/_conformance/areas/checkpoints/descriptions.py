"""Requirements on weights_info, the description of saved weights."""

from __future__ import annotations

from tinkerwire_generated import models
from tinkerwire_generated.api.weights import weights_info

from ...checks.checkpoint_lists import expect_adapter, sampler_path, training_path
from ...checks.rejection import require_rejected_call
from ...checks.saved_weights import ABSENT_NAME
from ...requirement import Breakage, Feature
from ...subject.server import Server
from .area import AREA


@AREA.must(
    19,
    operations=("weights_info",),
    contract=("weights_info 200", "WeightsInfoResponse.base_model", "WeightsInfoResponse.lora_rank"),
    remedy="Describe the weights with the base model and the rank of the model that saved them.",
    needs=("WGT-001",),
    breaks=[Breakage("0.6.0", "0.36.0", Feature.SAVE, "cannot create a training client from saved weights")],
)
async def weights_info_describes(server: Server) -> None:
    """weights_info gives the base model and the rank of weights that were saved for training."""
    await _expect_described(server, await training_path(server))


@AREA.should(
    21,
    operations=("weights_info",),
    contract=("weights_info 200", "WeightsInfoResponse.base_model", "WeightsInfoResponse.lora_rank"),
    remedy="Describe weights for sampling as those for training, also under the path that the save returned.",
    needs=("CKP-019", "WGT-002"),
    breaks=[Breakage("0.6.0", None, Feature.MANAGE, "raises an error in get_weights_info_by_tinker_path")],
)
async def weights_info_describes_sampler_weights(server: Server) -> None:
    """weights_info gives the base model and the rank of weights that were saved for sampling."""
    await _expect_described(server, await sampler_path(server))


@AREA.should(
    20,
    operations=("weights_info",),
    contract="weights_info 404",
    remedy="Answer weights_info for weights that do not exist with 404.",
    needs=("CKP-019",),
)
async def weights_info_of_unknown_is_an_error(server: Server) -> None:
    """weights_info of weights that do not exist is answered with a 4xx."""
    model = await server.model()
    path = model.checkpoint_path("training", ABSENT_NAME)
    await require_rejected_call(server, weights_info(body=models.WeightsInfoRequest(tinker_path=path)))


async def _expect_described(server: Server, path: str) -> None:
    info, exchange = await server.client.call(weights_info(body=models.WeightsInfoRequest(tinker_path=path)))
    await expect_adapter(server, info, exchange)
