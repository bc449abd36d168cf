"""Tests of refreshing a credential before it expires, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import tinkerwire as tw
from support.tokens import token
from support.virtual_time import run
from tinkerwire._credentials.refreshing import MARGIN_S, RETRY_S, RefreshingCredential
from tinkerwire._credentials.secret import Secret
from tinkerwire_base.errors import ResponseInfo

LIFETIME_S = 3600.0


class TokenSource:
    """Source of tokens that takes a second, or raises ``error``; its requests are recorded."""

    def __init__(self, lifetime_s: float) -> None:
        self.lifetime_s = lifetime_s
        self.requested_at: list[float] = []
        self.error: Exception | None = None
        self.credential = RefreshingCredential(self.obtain, "the token")

    async def obtain(self) -> Secret:
        self.requested_at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(1)
        if self.error is not None:
            raise self.error
        return Secret(token(self.lifetime_s))


def run_check(check: Callable[[TokenSource], Coroutine[Any, Any, None]], lifetime_s: float = LIFETIME_S) -> None:
    """Run a check of a new source in virtual time."""

    async def create_and_check() -> None:
        await check(TokenSource(lifetime_s))

    run(create_and_check())


def test_first_use_requests_one_token_for_all_waiters() -> None:
    """No token is requested before the first use."""

    async def check(source: TokenSource) -> None:
        await asyncio.sleep(100)
        assert source.requested_at == []
        secrets = await asyncio.gather(*(source.credential.get() for _ in range(50)))
        assert len(source.requested_at) == 1
        assert len({id(secret) for secret in secrets}) == 1

    run_check(check)


@pytest.mark.parametrize("lifetime_s", [LIFETIME_S, 20.0])
def test_steady_use_refreshes_at_half_the_lifetime_without_waits(lifetime_s: float) -> None:
    """The refresh runs in the background, so that no caller waits or gets a token near its expiry."""

    async def check(source: TokenSource) -> None:
        loop = asyncio.get_running_loop()
        last, since = await source.credential.get(), loop.time()
        for _ in range(200):
            await asyncio.sleep(lifetime_s / 100)
            before = loop.time()
            secret = await source.credential.get()
            assert loop.time() == before
            if secret is not last:
                last, since = secret, before
            assert before - since < lifetime_s * 0.6
        assert len(source.requested_at) == pytest.approx(4, abs=1)

    run_check(check, lifetime_s)


def test_use_near_or_after_expiry_waits_for_a_new_token() -> None:
    """Concurrent callers wait for the same new token."""

    async def check(source: TokenSource) -> None:
        first = await source.credential.get()
        for pause in (LIFETIME_S - MARGIN_S / 2, LIFETIME_S * 2):
            await asyncio.sleep(pause)
            requests = len(source.requested_at)
            secrets = await asyncio.gather(*(source.credential.get() for _ in range(10)))
            assert len(source.requested_at) == requests + 1
            assert len({id(secret) for secret in secrets}) == 1
            assert secrets[0] is not first

    run_check(check)


@pytest.mark.parametrize("status", [500, 401])
def test_failed_refresh_keeps_the_token_until_it_expires(status: int, caplog: pytest.LogCaptureFixture) -> None:
    """Refreshes are retried once a minute; after the expiry, each use raises the error until a refresh succeeds."""

    async def check(source: TokenSource) -> None:
        first = await source.credential.get()
        source.error = tw.APIStatusError("no", response=ResponseInfo(status_code=status))
        started = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() < started + LIFETIME_S - 10:
            assert await source.credential.get() is first
            await asyncio.sleep(1)
        assert len(source.requested_at) == pytest.approx(1 + (LIFETIME_S / 2) / RETRY_S, abs=3)
        await asyncio.sleep(20)
        with pytest.raises(tw.APIStatusError):
            await source.credential.get()
        source.error = None
        assert await source.credential.get() is not first

    with caplog.at_level(logging.WARNING, "tinkerwire"):
        run_check(check)
    assert "the token could not be renewed, and expires in" in caplog.text


def test_rejected_token_is_replaced_once() -> None:
    """Concurrent rejections of a token share one replacement; a later rejection of the old token requests none."""

    async def check(source: TokenSource) -> None:
        old = await source.credential.get()
        replacements = await asyncio.gather(*(source.credential.replace(old) for _ in range(10)))
        assert len(source.requested_at) == 2
        assert set(replacements) == {await source.credential.get()}
        assert await source.credential.replace(old) is replacements[0]
        assert len(source.requested_at) == 2

    run_check(check)


def test_cancelled_waiter_does_not_stop_the_refresh() -> None:
    """Other waiters get the token; only close cancels them."""

    async def check(source: TokenSource) -> None:
        cancelled = asyncio.create_task(source.credential.get())
        waiter = asyncio.create_task(source.credential.get())
        await asyncio.sleep(0.5)
        cancelled.cancel()
        assert await waiter
        assert len(source.requested_at) == 1
        replacement = asyncio.create_task(source.credential.replace(waiter.result()))
        await asyncio.sleep(0.5)
        await source.credential.close()
        with pytest.raises(asyncio.CancelledError):
            await replacement

    run_check(check)


def test_times_of_a_refresh_follow_from_the_lifetime() -> None:
    """Requests wait for a refresh only in the last minute, or in the last tenth of a short lifetime."""

    async def check(source: TokenSource) -> None:
        first = await source.credential.get()
        start = asyncio.get_running_loop().time()
        lifetime, margin = source.lifetime_s, min(MARGIN_S, source.lifetime_s / 10)
        await asyncio.sleep(lifetime / 2 - 1 - (asyncio.get_running_loop().time() - start))
        assert await source.credential.get() is first
        assert len(source.requested_at) == 1
        await asyncio.sleep(lifetime / 2 - margin)
        before = asyncio.get_running_loop().time()
        assert await source.credential.get() is first
        assert asyncio.get_running_loop().time() == before
        await asyncio.sleep(2)
        assert len(source.requested_at) == 2
        assert await source.credential.get() is not first

    run_check(check, 3600.0)
    run_check(check, 100.0)


def test_refresh_in_the_last_minute_is_awaited() -> None:
    """An idle client gets a new token rather than one that is about to expire."""

    async def check(source: TokenSource) -> None:
        first = await source.credential.get()
        await asyncio.sleep(LIFETIME_S - MARGIN_S + 1)
        before = asyncio.get_running_loop().time()
        assert await source.credential.get() is not first
        assert asyncio.get_running_loop().time() == before + 1

    run_check(check)


def test_failed_refresh_is_repeated_after_a_minute_and_then_at_once() -> None:
    """A success ends the pause that a failure began."""

    async def check(source: TokenSource) -> None:
        first = await source.credential.get()
        await asyncio.sleep(LIFETIME_S / 2)
        source.error = tw.TinkerError("no")
        assert await source.credential.get() is first
        await asyncio.sleep(RETRY_S - 1)
        await source.credential.get()
        assert len(source.requested_at) == 2
        await asyncio.sleep(3)
        source.error = None
        await source.credential.get()
        await asyncio.sleep(2)
        assert len(source.requested_at) == 3
        second = await source.credential.get()
        assert second is not first
        replaced = await source.credential.replace(second)
        assert replaced is None or replaced is not second
        assert len(source.requested_at) == 4

    run_check(check)


def test_closed_credential_stops_its_refresh() -> None:
    """Closing cancels a refresh in the background, and is possible without one."""

    async def check(source: TokenSource) -> None:
        await source.credential.close()
        await source.credential.get()
        await asyncio.sleep(LIFETIME_S / 2)
        await source.credential.get()
        await asyncio.sleep(0)
        tasks = len(asyncio.all_tasks())
        assert tasks > 1
        await source.credential.close()
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) < tasks

    run_check(check)
