"""Responses take no more memory than their limit; the error names limit, setting and request."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

import tinkerwire as tw
from support.clients import FAST, PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer
from support.transports import error_of_send
from tinkerwire._transport.response_body import PIECE_BYTES, Decompressor

pytestmark = pytest.mark.timeout(60)
KINDS = ["builtin", "httpx"]
LIMIT = 100_000
CAPABILITIES = {"supported_models": [{"model_name": "base"}]}


def raw_deflate(data: bytes) -> bytes:
    """Compress as deflate without the zlib header, as some servers do."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKERS = {
    "gzip": ("gzip", gzip.compress),
    "several members": ("gzip", lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:]) + b"\0\0\0"),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "twice": ("gzip, gzip", lambda data: gzip.compress(gzip.compress(data))),
    "plain": ("identity", lambda data: data),
}


def ask(server: ScriptedServer, kind: str, **policy: Any) -> Any:
    """Send one request over a transport, once."""
    http = httpx.AsyncClient() if kind == "httpx" else None
    retry = tw.RetryConfig(enable_retry_logic=False, **policy)
    with open_client(server.url, http_client=http, retry=retry) as client:
        return client.get_server_capabilities()


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("kind", KINDS)
def test_accepted_encodings_are_decompressed(server: ScriptedServer, kind: str, packer: str) -> None:
    """The client accepts only encodings that it can decompress."""
    encoding, pack = PACKERS[packer]
    body = pack(json.dumps(CAPABILITIES).encode())
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse(body, headers={"content-encoding": encoding})
    assert ask(server, kind).supported_models[0].model_name == "base"
    assert server.requests[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("kind", KINDS)
def test_oversized_response_is_rejected(server: ScriptedServer, kind: str, status: int, packer: str) -> None:
    """In any encoding and status the error names limit, setting and request, and is not retried."""
    encoding, pack = PACKERS[packer]
    body = pack(b" " * (LIMIT + 1))
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse(
        body, status=status, headers={"content-encoding": encoding}
    )
    http = httpx.AsyncClient() if kind == "httpx" else None
    policy = tw.RetryConfig(max_response_bytes=LIMIT, retry_delay_base=0.001)
    with (
        open_client(server.url, http_client=http, retry=policy) as client,
        pytest.raises(tw.ResponseTooLargeError) as caught,
    ):
        client.get_server_capabilities()
    for part in ("GET", "/api/v1/get_server_capabilities", str(LIMIT), "RetryConfig.max_response_bytes"):
        assert part in str(caught.value)
    assert (caught.value.limit_bytes, caught.value.setting) == (LIMIT, "RetryConfig.max_response_bytes")
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_decompression_bomb_takes_little_memory(server: ScriptedServer, kind: str) -> None:
    """Two megabytes that decompress to two thousand cost little more than the limit."""
    block = gzip.compress(bytes(2**20))
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse(
        block * 2000, headers={"content-encoding": "gzip"}
    )
    tracemalloc.start()
    try:
        with pytest.raises(tw.ResponseTooLargeError):
            ask(server, kind, max_response_bytes=2**20)
        assert tracemalloc.get_traced_memory()[1] < 40 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_decompression_counts_for_the_timeout(server: ScriptedServer, kind: str) -> None:
    """A response that arrives at once and decompresses to 600 MiB ends at the timeout of the request."""
    block = gzip.compress(bytes(2**20))
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse(
        block * 600, headers={"content-encoding": "gzip"}
    )
    assert isinstance(error_of_send(kind, server.url, timeout_s=0.15), tw.APITimeoutError)


@pytest.mark.parametrize("kind", KINDS)
def test_endless_body_ends_at_limit(server: ScriptedServer, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client closes the connection to a server that sends without end."""

    async def give(request: web.Request, _: ScriptedResponse) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 65536)
            await asyncio.sleep(0)

    monkeypatch.setattr(server, "_send", give)
    with pytest.raises(tw.ResponseTooLargeError):
        ask(server, kind, max_response_bytes=10 * 2**20)
    server.wait_for(lambda: not server.active["get_server_capabilities"], "the connection is closed")


@pytest.mark.parametrize("kind", KINDS)
def test_results_have_separate_limit(server: ScriptedServer, kind: str) -> None:
    """A result may be larger than other responses, and has its own setting."""
    http = httpx.AsyncClient() if kind == "httpx" else None
    big = {"sequences": [{"stop_reason": "stop", "tokens": [1] * LIMIT, "logprobs": [-0.5] * LIMIT}]}
    server.on_poll("Sample", lambda _: ScriptedResponse(big))
    policy = tw.RetryConfig(max_response_bytes=LIMIT, max_result_bytes=10 * LIMIT)
    with open_client(server.url, http_client=http, retry=policy) as client:
        sampling = client.create_sampling_client(base_model="base")
        assert len(sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S).sequences[0].tokens) == LIMIT
    server.on_poll("Sample", lambda _: ScriptedResponse({**big, "more": " " * 10 * LIMIT}))
    with open_client(server.url, retry=policy) as client:
        sampling = client.create_sampling_client(base_model="base")
        with pytest.raises(tw.ResponseTooLargeError, match=r"RetryConfig\.max_result_bytes"):
            sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        copy = tw.SamplingClient.from_sampler_handle(sampling.get_sampler_handle(), api_key="tml-other-0123")
        with pytest.raises(tw.ResponseTooLargeError, match=str(10 * LIMIT)):
            copy.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("encoding", "body"), [("br", b"x"), ("zstd", b"x"), ("gzip, gzip, gzip", b"x")])
def test_unaccepted_encoding_is_named(server: ScriptedServer, kind: str, encoding: str, body: bytes) -> None:
    """The error is not retried."""
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse(body, headers={"content-encoding": encoding})
    with pytest.raises(tw.APIError, match="content encoding"):
        ask(server, kind)


def test_default_and_invalid_limits() -> None:
    """The defaults are 1 GiB for results and 64 MiB for other responses; a limit is positive, or None."""
    assert (tw.RetryConfig().max_result_bytes, tw.RetryConfig().max_response_bytes) == (2**30, 2**26)
    assert tw.RetryConfig(max_result_bytes=None).max_result_bytes is None
    for odd in (0, -1, 1.5, True, "1"):
        with pytest.raises((ValueError, TypeError), match="max_result_bytes"):
            tw.RetryConfig(max_result_bytes=odd)  # type: ignore[arg-type]


@given(st.binary(max_size=3000), st.integers(1, 300), st.sampled_from(sorted(set(PACKERS) - {"plain", "twice"})))
def test_decompression_is_independent_of_chunks(data: bytes, size: int, packer: str) -> None:
    """Data in any chunks have the same decompressed form, in small pieces."""
    encoding, pack = PACKERS[packer]
    packed, data = pack(data * 300), data * 300
    decompressor = Decompressor(encoding)

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(packed), size):
            yield from decompressor.decompress(packed[start : start + size])

    received_pieces = list(pieces())
    decompressor.finish()
    assert b"".join(received_pieces) == data
    assert max((len(piece) for piece in received_pieces), default=0) <= PIECE_BYTES


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_compressed_body_is_connection_error(server: ScriptedServer, kind: str) -> None:
    """The request is retried."""
    body = gzip.compress(json.dumps(CAPABILITIES).encode())
    answers = iter([ScriptedResponse(body[:-9], headers={"content-encoding": "gzip"}), ScriptedResponse(CAPABILITIES)])
    server.rules["get_server_capabilities"] = lambda _: next(answers)
    http = httpx.AsyncClient() if kind == "httpx" else None
    with open_client(server.url, http_client=http, retry=FAST) as client:
        assert client.get_server_capabilities().supported_models
    assert len(server.requests) == 2
