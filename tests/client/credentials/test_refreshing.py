"""Renewal of what runs out, in virtual time."""

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

LIFE_S = 3600.0


class Source:
    """Brings tokens, after a second; or the faults that it is told of."""

    def __init__(self, life_s: float = LIFE_S) -> None:
        self.life_s = life_s
        self.asked: list[float] = []
        self.error: Exception | None = None
        self.renewed = RefreshingCredential(self.obtain, "it")

    async def obtain(self) -> Secret:
        self.asked.append(asyncio.get_running_loop().time())
        await asyncio.sleep(1)
        if self.error is not None:
            raise self.error
        return Secret(token(self.life_s))


def in_virtual_time(check: Callable[[Source], Coroutine[Any, Any, None]], life_s: float = LIFE_S) -> None:
    async def body() -> None:
        await check(Source(life_s))

    run(body())


def test_one_for_all_at_first_need() -> None:
    """Nothing is asked for before it is needed, and all who need it wait for the same."""

    async def check(source: Source) -> None:
        await asyncio.sleep(100)
        assert source.asked == []
        found = await asyncio.gather(*(source.renewed.get() for _ in range(50)))
        assert len(source.asked) == 1
        assert len({id(each) for each in found}) == 1

    in_virtual_time(check)


@pytest.mark.parametrize("life_s", [LIFE_S, 20.0])
def test_no_token_is_sent_near_its_end(life_s: float) -> None:
    """With steady use it is renewed at half its life, behind the backs of those who use it; they never wait."""

    async def check(source: Source) -> None:
        loop = asyncio.get_running_loop()
        last, since = await source.renewed.get(), loop.time()
        for _ in range(200):
            await asyncio.sleep(life_s / 100)
            before = loop.time()
            secret = await source.renewed.get()
            assert loop.time() == before
            if secret is not last:
                last, since = secret, before
            assert before - since < life_s * 0.6
        assert len(source.asked) == pytest.approx(4, abs=1)

    in_virtual_time(check, life_s)


def test_late_use_waits() -> None:
    """Who comes shortly before the end, or after it, waits for the new one; all for the same."""

    async def check(source: Source) -> None:
        first = await source.renewed.get()
        for pause in (LIFE_S - MARGIN_S / 2, LIFE_S * 2):
            await asyncio.sleep(pause)
            asked = len(source.asked)
            found = await asyncio.gather(*(source.renewed.get() for _ in range(10)))
            assert len(source.asked) == asked + 1
            assert len({id(each) for each in found}) == 1
            assert found[0] is not first

    in_virtual_time(check)


@pytest.mark.parametrize("status", [500, 401])
def test_a_renewal_that_fails(status: int, caplog: pytest.LogCaptureFixture) -> None:
    """The old one serves to its end while renewals are tried once a minute; then the error surfaces, and passes."""

    async def check(source: Source) -> None:
        first = await source.renewed.get()
        source.error = tw.APIStatusError("no", response=ResponseInfo(status_code=status))
        started = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() < started + LIFE_S - 10:
            assert await source.renewed.get() is first
            await asyncio.sleep(1)
        assert len(source.asked) == pytest.approx(1 + (LIFE_S / 2) / RETRY_S, abs=3)
        await asyncio.sleep(20)
        with pytest.raises(tw.APIStatusError):
            await source.renewed.get()
        source.error = None
        assert await source.renewed.get() is not first

    with caplog.at_level(logging.WARNING, "tinkerwire"):
        in_virtual_time(check)
    assert "it cannot be renewed yet; it lasts" in caplog.text


def test_after_a_refusal() -> None:
    """What the server refused is renewed once, whoever says so; word of an old one changes nothing."""

    async def check(source: Source) -> None:
        old = await source.renewed.get()
        found = await asyncio.gather(*(source.renewed.replace(old) for _ in range(10)))
        assert len(source.asked) == 2
        assert set(found) == {await source.renewed.get()}
        assert await source.renewed.replace(old) is found[0]
        assert len(source.asked) == 2

    in_virtual_time(check)


def test_the_cancelled_take_nothing_away() -> None:
    """Someone who is cancelled while waiting does not stop the renewal of the others; close does."""

    async def check(source: Source) -> None:
        impatient = asyncio.create_task(source.renewed.get())
        patient = asyncio.create_task(source.renewed.get())
        await asyncio.sleep(0.5)
        impatient.cancel()
        assert await patient
        assert len(source.asked) == 1
        waiting = asyncio.create_task(source.renewed.replace(patient.result()))
        await asyncio.sleep(0.5)
        await source.renewed.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    in_virtual_time(check)
