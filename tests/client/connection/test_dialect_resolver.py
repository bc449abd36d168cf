"""Tests of the dialect of a server: its discovery, what responses teach, and trials of encodings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

import tinkerwire as tw
from support.virtual_time import run
from tinkerwire._connection.dialect_resolver import TRIAL_WAIT_S, DialectResolver, discover_dialect
from tinkerwire._wire.dialect import Dialect
from tinkerwire_base.call import PROTOBUF, WireResponse
from tinkerwire_base.errors import ResponseInfo, status_error
from tinkerwire_generated import models

LOCAL = "http://127.0.0.1:1"
SERVICE = "https://tinker.thinkingmachines.dev/services/tinker-prod"


class ConfigServer:
    """Server of client/config that takes a second, and counts its requests."""

    def __init__(self, flags: Any = None, error: Exception | None = None) -> None:
        self.requests: list[Any] = []
        self._flags = {} if flags is None else flags
        self._error = error

    async def fetch(self, call: Any) -> tuple[models.ClientConfigResponse, WireResponse]:
        self.requests.append(call)
        await asyncio.sleep(1)
        if self._error is not None:
            raise self._error
        known = self._flags if isinstance(self._flags, dict) else {}
        content = json.dumps(self._flags).encode()
        return models.ClientConfigResponse(**known), WireResponse(status=200, content=content)


def make_status_error(status: int) -> tw.APIStatusError:
    """Return the error of a response."""
    return status_error(status)("x", response=ResponseInfo(status_code=status))


def discover(server: ConfigServer, *, is_tinker: bool = False) -> Dialect:
    """Return the dialect that a client discovers."""
    return run(discover_dialect(server.fetch, is_tinker=is_tinker))


@pytest.mark.parametrize("status", [404, 405])
def test_server_without_config_has_an_old_dialect(status: int) -> None:
    """The encoding of batches is a guess then."""
    assert discover(ConfigServer(error=make_status_error(status))) == Dialect.from_client_config(None)


@pytest.mark.parametrize("error", [make_status_error(403), make_status_error(500), tw.APIConnectionError(message="x")])
def test_other_errors_of_the_discovery_are_raised(error: tw.TinkerError) -> None:
    """An error that does not mean a missing endpoint decides nothing."""
    with pytest.raises(type(error)):
        discover(ConfigServer(error=error))


def test_flags_of_the_response_decide_about_forward() -> None:
    """The names of the flags count, not their values; a response that is not an object has none."""
    old = discover(ConfigServer({"proto_write_fwdbwd": False}))
    assert "forward" not in old.protobuf_operations
    assert old.is_provisional
    both = discover(ConfigServer({"proto_write_fwdbwd": False, "fwd_via_fwdbwd": False}))
    for server in (ConfigServer(), ConfigServer([])):
        assert discover(server).protobuf_operations == both.protobuf_operations != old.protobuf_operations
    service = discover(ConfigServer({"proto_write_fwdbwd": False}), is_tinker=True)
    assert service.protobuf_operations == both.protobuf_operations
    assert not service.is_provisional


@pytest.mark.parametrize(("address", "is_provisional"), [(LOCAL, True), (SERVICE, False)])
def test_address_of_the_service_makes_the_dialect_certain(address: str, is_provisional: bool) -> None:
    """Callers that start together share one request, which carries the newest version."""
    server = ConfigServer()
    resolver = DialectResolver(server.fetch, None, address)

    async def check() -> None:
        first, second = await asyncio.gather(resolver.get(), resolver.get())
        assert first is second is resolver.current
        assert await resolver.get() is first
        assert first.is_provisional is is_provisional

    run(check())
    (call,) = server.requests
    assert call.body.sdk_version


def test_set_version_is_not_discovered() -> None:
    """A dialect that the user sets needs no request."""
    server = ConfigServer()
    dialect = Dialect.for_version("0.16.1")
    resolver = DialectResolver(server.fetch, dialect, LOCAL)
    assert run(resolver.get()) is dialect
    assert resolver.refused == set()
    assert not server.requests


def test_correction_during_the_discovery_is_kept() -> None:
    """A dialect that a batch has set in the meantime is newer than the discovered one."""
    resolver = DialectResolver(ConfigServer().fetch, None, LOCAL)
    corrected = Dialect.from_client_config(None)

    async def check() -> None:
        discovery = asyncio.ensure_future(resolver.get())
        await asyncio.sleep(0.5)
        resolver.current = corrected
        assert await discovery is corrected

    run(check())


def test_failed_discovery_is_repeated() -> None:
    """The next caller sends another request."""
    server = ConfigServer(error=make_status_error(500))
    resolver = DialectResolver(server.fetch, None, LOCAL)

    async def check() -> None:
        for _ in range(2):
            with pytest.raises(tw.InternalServerError):
                await resolver.get()

    run(check())
    assert len(server.requests) == 2


def test_closing_cancels_the_discovery() -> None:
    """A caller that waits for it does not wait for the server."""
    resolver = DialectResolver(ConfigServer().fetch, None, LOCAL)

    async def check() -> None:
        waiting = asyncio.ensure_future(resolver.get())
        await asyncio.sleep(0.5)
        await resolver.close()
        await asyncio.wait({waiting})
        assert asyncio.get_running_loop().time() < 1
        assert resolver.current is None

    run(check())


@pytest.mark.parametrize(
    "learn",
    [
        lambda resolver: resolver.learn_json_results(),
        lambda resolver: resolver.learn_separate_load(),
        lambda resolver: resolver.learn_form("forward", Dialect.from_client_config(None)),
    ],
)
def test_nothing_is_learnt_before_the_discovery(learn: Callable[[DialectResolver], None]) -> None:
    """Without a dialect in use, a response changes nothing and raises nothing."""
    resolver = DialectResolver(ConfigServer().fetch, None, LOCAL)
    learn(resolver)
    assert resolver.current is None


def test_rejected_protobuf_results_are_no_longer_accepted() -> None:
    """Only the Accept header changes."""
    before = Dialect.from_client_config(models.ClientConfigResponse())
    resolver = DialectResolver(ConfigServer().fetch, before, LOCAL)
    assert PROTOBUF in before.accept(models.ForwardBackwardOutput)
    resolver.learn_json_results()
    assert resolver.current is not None
    assert resolver.current.accept(models.ForwardBackwardOutput) == "application/json"
    assert resolver.current.protobuf_operations == before.protobuf_operations


def test_separate_load_is_learnt_although_flags_announce_another() -> None:
    """The other flags stay as they are."""
    config = models.ClientConfigResponse(create_model_via_load_weights=True, sample_join_sampling_session=True)
    resolver = DialectResolver(ConfigServer().fetch, Dialect.from_client_config(config), LOCAL)
    resolver.learn_separate_load()
    assert resolver.current is not None
    assert not resolver.current.config.create_model_via_load_weights
    assert resolver.current.config.sample_join_sampling_session


def test_confirmed_form_keeps_the_dialect_object() -> None:
    """Only news make another object, by which callers notice that they must split their batches again."""
    before = Dialect.from_client_config(None)
    resolver = DialectResolver(ConfigServer().fetch, before, LOCAL)
    resolver.learn_form("forward_backward", before.forms("forward_backward")[0])
    confirmed = resolver.current
    assert confirmed is not None
    assert confirmed is not before
    assert not confirmed.is_provisional
    resolver.learn_form("forward_backward", confirmed.forms("forward_backward")[0])
    assert resolver.current is confirmed
    resolver.learn_form("forward_backward", confirmed.forms("forward_backward")[1])
    assert resolver.current is not confirmed


def test_trials_take_turns_for_a_limited_time() -> None:
    """A second batch waits for the first one, at most for the limit, and does not end the turn of another."""
    resolver = DialectResolver(ConfigServer().fetch, None, LOCAL)
    times: list[tuple[str, float]] = []

    async def try_encoding(name: str, seconds: float) -> None:
        async with resolver.trial():
            times.append((name, asyncio.get_running_loop().time()))
            await asyncio.sleep(seconds)

    async def check() -> None:
        await asyncio.gather(try_encoding("first", 2), try_encoding("second", 1))
        assert times == [("first", 0), ("second", 2)]
        times.clear()
        start = asyncio.get_running_loop().time()
        await asyncio.gather(try_encoding("slow", 20), try_encoding("impatient", 1))
        assert times == [("slow", start), ("impatient", start + TRIAL_WAIT_S)]
        with pytest.raises(ValueError, match="rejected"):
            async with resolver.trial():
                raise ValueError("rejected")
        await asyncio.wait_for(try_encoding("next", 0), 1)

    run(check())
