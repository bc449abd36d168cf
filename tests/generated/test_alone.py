"""Tests of the generated package without the client: models and stubs with httpx and a server."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from typing import Any

import httpx
import pytest

from support.fixed_server import FixedServer
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.errors import APIStatusError, InternalServerError, NotFoundError
from tinkerwire_generated.api import futures, runs, sampling, service, session
from tinkerwire_generated.models import (
    CreateSessionRequest,
    FutureRetrieveRequest,
    ModelInput,
    SampleRequest,
    SampleResponse,
    SamplingParams,
    TryAgainResponse,
)

KEY = {"x-api-key": "tml-secret"}


def sample(http: httpx.Client) -> SampleResponse:
    opened = session.create_session(body=CreateSessionRequest(tags=[], user_metadata=None, sdk_version="0.16.1"))
    session_id = opened.send(http).session_id
    request = SampleRequest(
        prompt=ModelInput.from_ints([1, 2]),
        sampling_params=SamplingParams(max_tokens=2),
        sampling_session_id=session_id,
    )
    poll = FutureRetrieveRequest(request_id=sampling.asample(body=request).send(http).request_id)
    while isinstance(result := futures.retrieve_future(body=poll).send(http), TryAgainResponse):
        pass
    assert isinstance(result, SampleResponse)
    return result


def test_sync_client_trains_and_samples(server: FixedServer) -> None:
    """A client on httpx.Client creates a session, requests a sample and fetches its result."""
    with httpx.Client(base_url=server.url, headers=KEY) as http:
        response = sample(http)
    assert response.sequences[0].tokens == [3, 4]
    assert server.requests == [
        "POST /api/v1/create_session",
        "POST /api/v1/asample",
        *["POST /api/v1/retrieve_future"] * 3,
    ]
    assert server.bodies[0] == {
        "tags": [],
        "user_metadata": None,
        "sdk_version": "0.16.1",
        "type": "create_session",
    }
    assert server.bodies[1]["prompt"] == {"chunks": [{"tokens": [1, 2], "type": "encoded_text"}]}
    assert all(sent["x-api-key"] == "tml-secret" for sent in server.headers)


def test_async_client_trains_and_samples(server: FixedServer) -> None:
    """A client on httpx.AsyncClient uses the same stubs."""

    async def run() -> Any:
        async with httpx.AsyncClient(base_url=server.url) as http:
            poll = FutureRetrieveRequest(request_id="r-1")
            while isinstance(result := await futures.retrieve_future(body=poll).asend(http), TryAgainResponse):
                pass
            return result

    assert asyncio.run(run()).sequences[0].logprobs == [-0.5, -0.25]


def test_generated_package_works_without_the_client(server: FixedServer) -> None:
    """It works in a process in which tinkerwire cannot be imported."""
    source = inspect.getsource(sys.modules[__name__])
    head = source[source.index("import httpx") : source.index("import pytest")]
    models = source[source.index("from tinkerwire_base.errors") : source.index("KEY = ")]
    program = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tinkerwire", "tinkerwire_codegen", "aiohttp"):
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Blocked())
{head}
{models}
{inspect.getsource(sample)}
with httpx.Client(base_url={server.url!r}) as http:
    print(sample(http).sequences[0].tokens)
try:
    import tinkerwire
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout == "[3, 4]\ntinkerwire is blocked\n", run.stderr


def test_path_prefix_of_the_base_url_is_kept(server: FixedServer) -> None:
    """Base URLs may have a path of their own, as that of the Tinker service has."""
    with httpx.Client(base_url=server.url + "/services/prod") as http, pytest.raises(NotFoundError):
        service.healthz().send(http)
    assert server.requests == ["GET /services/prod/api/v1/healthz"]


def test_slashes_reach_the_server_unescaped(server: FixedServer) -> None:
    """A checkpoint id keeps its slash on the way through httpx; 204 without a body is a success."""
    with httpx.Client(base_url=server.url) as http:
        assert runs.delete_checkpoint("run-1", "weights/0001").send(http) is None
    assert server.requests == ["DELETE /api/v1/training_runs/run-1/checkpoints/weights/0001"]


@pytest.mark.parametrize(
    ("call", "kind", "pattern"),
    [
        (runs.get_training_run("run-1"), NotFoundError, "no run-1 here"),
        (service.healthz(), InternalServerError, "out of order"),
    ],
)
def test_errors_contain_request_and_response(
    call: Any, kind: type[APIStatusError], pattern: str, server: FixedServer
) -> None:
    """An error has the class of its status, shows method, address and the server's words, and no key."""
    with httpx.Client(base_url=server.url, headers=KEY) as http, pytest.raises(kind, match=pattern) as caught:
        call.send(http)
    error = caught.value
    assert server.url in str(error) and f"HTTP {error.status_code}" in str(error)
    assert error.body == {"detail": pattern}
    assert "tml-secret" not in str(error) + repr(error) + repr(vars(error))


def test_unreachable_server_raises_the_http_clients_error() -> None:
    """A refused connection leaves as what httpx raises, which its users know."""
    with httpx.Client(base_url="http://127.0.0.1:9") as http, pytest.raises(httpx.ConnectError):
        service.healthz().send(http, Converter())
