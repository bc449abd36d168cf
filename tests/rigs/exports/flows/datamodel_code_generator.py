"""Pydantic models of datamodel-code-generator: read captured bodies, or talk to a server by httpx."""

from __future__ import annotations

import json
import sys
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
from flow import contains, run

from generated import models


class GeneratedClient:
    """Calls of the flow."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/api/v1/", headers={"X-API-Key": "tml-rig"}, timeout=60)

    def _post(self, path: str, body: Any, response_type: Any) -> Any:
        response = self._http.post(path, json=body.model_dump(mode="json", exclude_unset=True))
        if response.status_code == HTTPStatus.REQUEST_TIMEOUT:
            return None
        return response_type.model_validate(response.raise_for_status().json())

    def create_session(self, version: str) -> str:
        body = models.CreateSessionRequest(tags=[], user_metadata=None, sdk_version=version)
        return str(self._post("create_session", body, models.CreateSessionResponse).session_id)

    def first_model(self) -> str:
        response = self._http.get("get_server_capabilities").raise_for_status()
        return str(models.GetServerCapabilitiesResponse.model_validate(response.json()).supported_models[0].model_name)

    def create_model(self, session_id: str, base_model: str) -> str:
        body = models.CreateModelRequest.model_validate(
            {"session_id": session_id, "model_seq_id": 0, "base_model": base_model, "lora_config": {"rank": 4}}
        )
        return _value(self._post("create_model", body, models.UntypedAPIFuture).request_id)

    def retrieve_model_id(self, request_id: str) -> str | None:
        result = self._retrieve(request_id, models.CreateModelResponse)
        return None if result is None else _value(result.model_id)

    def get_info(self, model_id: str) -> str:
        body = models.GetInfoRequest.model_validate({"model_id": model_id})
        return _value(self._post("get_info", body, models.GetInfoResponse).model_id)

    def save_weights(self, model_id: str) -> str:
        body = models.SaveWeightsRequest.model_validate({"model_id": model_id, "path": "a", "seq_id": 1})
        return _value(self._post("save_weights", body, models.UntypedAPIFuture).request_id)

    def retrieve_path(self, request_id: str) -> str | None:
        result = self._retrieve(request_id, models.SaveWeightsResponse)
        return None if result is None else result.path

    def open_sampler(self, session_id: str, base_model: str) -> str:
        body = models.CreateSamplingSessionRequest(
            session_id=session_id, sampling_session_seq_id=0, base_model=base_model
        )
        response = self._post("create_sampling_session", body, models.CreateSamplingSessionResponse)
        return str(response.sampling_session_id)

    def sample(self, sampling_session_id: str) -> str:
        chunk = {"tokens": [1, 2], "type": "encoded_text"}
        body = {"prompt": {"chunks": [chunk]}, "sampling_params": {"max_tokens": 4}}
        body |= {"sampling_session_id": sampling_session_id, "seq_id": 0}
        request = models.SampleRequest.model_validate(body)
        return _value(self._post("asample", request, models.UntypedAPIFuture).request_id)

    def list_runs(self) -> list[str]:
        response = self._http.get("training_runs", params={"limit": 100}).raise_for_status()
        page = models.TrainingRunsResponse.model_validate(response.json())
        return [item.training_run_id for item in page.training_runs]

    def _retrieve(self, request_id: str, result_type: Any) -> Any:
        body = models.FutureRetrieveRequest.model_validate({"request_id": request_id})
        return self._post("retrieve_future", body, result_type)


def _value(identifier: Any) -> str:
    """Return the text of an identifier, which has a model of its own."""
    return str(getattr(identifier, "root", identifier))


def read_bodies(file: Path) -> None:
    """Read each captured body and compare what it becomes with what was sent."""
    bodies = json.loads(file.read_text())
    for name, value in bodies:
        read = getattr(models, name).model_validate(value).model_dump(mode="json", exclude_unset=True)
        assert contains(read, value) and contains(value, read), f"{name}: read {read}, sent {value}"
    print(f"{len(bodies)} of {len(bodies)}")  # noqa: T201


if __name__ == "__main__":
    if sys.argv[1] == "read":
        read_bodies(Path("bodies.json"))
    else:
        run(GeneratedClient(sys.argv[2]), sys.argv[3])
