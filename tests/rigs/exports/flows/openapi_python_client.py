"""Client of openapi-python-client: reads captured bodies, or talks to a server."""

from __future__ import annotations

import json
import sys
from http import HTTPStatus
from pathlib import Path
from typing import Any

from flow import contains, run
from generated.api.futures import retrieve_future
from generated.api.runs import list_training_runs
from generated.api.sampling import asample, create_sampling_session
from generated.api.service import get_server_capabilities
from generated.api.session import create_session
from generated.api.training import create_model, get_info
from generated.api.weights import save_weights

from generated import AuthenticatedClient, models


class GeneratedClient:
    """Calls of the flow."""

    def __init__(self, url: str) -> None:
        self._client = AuthenticatedClient(base_url=url, token="tml-rig", prefix="", auth_header_name="X-API-Key")

    def _post(self, endpoint: Any, body: Any) -> Any:
        return endpoint.sync(client=self._client, body=body)

    def create_session(self, version: str) -> str:
        body = models.CreateSessionRequest(tags=[], user_metadata=None, sdk_version=version)
        return str(self._post(create_session, body).session_id)

    def first_model(self) -> str:
        return str(get_server_capabilities.sync(client=self._client).supported_models[0].model_name)

    def create_model(self, session_id: str, base_model: str) -> str:
        body = models.CreateModelRequest(
            session_id=session_id, model_seq_id=0, base_model=base_model, lora_config=models.LoraConfig(rank=4)
        )
        return str(self._post(create_model, body).request_id)

    def retrieve_model_id(self, request_id: str) -> str | None:
        result = self._retrieve(request_id)
        return None if result is None else models.CreateModelResponse.from_dict(result).model_id

    def get_info(self, model_id: str) -> str:
        return str(self._post(get_info, models.GetInfoRequest(model_id=model_id)).model_id)

    def save_weights(self, model_id: str) -> str:
        return str(
            self._post(save_weights, models.SaveWeightsRequest(model_id=model_id, path="a", seq_id=1)).request_id
        )

    def retrieve_path(self, request_id: str) -> str | None:
        result = self._retrieve(request_id)
        return None if result is None else models.SaveWeightsResponse.from_dict(result).path

    def open_sampler(self, session_id: str, base_model: str) -> str:
        body = models.CreateSamplingSessionRequest(
            session_id=session_id, sampling_session_seq_id=0, base_model=base_model
        )
        return str(self._post(create_sampling_session, body).sampling_session_id)

    def sample(self, sampling_session_id: str) -> str:
        body = models.SampleRequest(
            prompt=models.ModelInput(chunks=[models.EncodedTextChunk(tokens=[1, 2], type_="encoded_text")]),
            sampling_params=models.SamplingParams(max_tokens=4),
            sampling_session_id=sampling_session_id,
            seq_id=0,
        )
        return str(self._post(asample, body).request_id)

    def list_runs(self) -> list[str]:
        page = list_training_runs.sync(client=self._client, limit=100)
        return [item.training_run_id for item in page.training_runs]

    def _retrieve(self, request_id: str) -> Any:
        """Return the body of a poll; only the caller knows which of the results it is."""
        response = retrieve_future.sync_detailed(
            client=self._client, body=models.FutureRetrieveRequest(request_id=request_id)
        )
        return None if response.status_code == HTTPStatus.REQUEST_TIMEOUT else json.loads(response.content)


def read_bodies(file: Path) -> None:
    """Read each captured body and compare what it becomes with what was sent."""
    bodies = json.loads(file.read_text())
    for name, value in bodies:
        read = getattr(models, name).from_dict(value).to_dict()
        assert contains(read, value), f"{name}: read {read}, sent {value}"
    print(f"{len(bodies)} of {len(bodies)}")  # noqa: T201


if __name__ == "__main__":
    if sys.argv[1] == "read":
        read_bodies(Path("bodies.json"))
    else:
        run(GeneratedClient(sys.argv[2]), sys.argv[3])
