"""The _async variants of the methods of RestClient."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine

import pytest

import tinkerwire as tw

pytestmark = pytest.mark.timeout(60)


LOCAL_METHODS = ("get_telemetry", "close")
"""Methods that do not wait for the server, and therefore have no _async variant."""
METHOD_NAMES = [
    name for name in dir(tw.RestClient) if not name.startswith("_") and not name.endswith(("_async", *LOCAL_METHODS))
]


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_every_method_has_an_async_variant(name: str) -> None:
    """Each method has an _async variant with the same parameters, which returns the result of the future."""
    method, async_method = getattr(tw.RestClient, name), getattr(tw.RestClient, f"{name}_async")
    assert inspect.iscoroutinefunction(async_method)
    signature, async_signature = inspect.signature(method), inspect.signature(async_method)
    assert signature.parameters == async_signature.parameters
    assert signature.return_annotation == f"APIFuture[{async_signature.return_annotation}]"


def test_async_methods_pass_their_arguments(monkeypatch: pytest.MonkeyPatch, rest: tw.RestClient) -> None:
    """An _async method passes each argument to the same parameter of the method."""

    async def run(name: str) -> None:
        parameters = inspect.signature(getattr(rest, name)).parameters.values()
        keywords = {p.name: p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
        positional = tuple(p.name for p in parameters if p.name not in keywords)
        calls: list[tuple[object, ...]] = []

        async def respond() -> str:
            return name

        def method(*arguments: object, **options: object) -> Coroutine[None, None, str]:
            calls.append((*arguments, options))
            return respond()

        monkeypatch.setattr(rest, name, method)
        result = await getattr(rest, f"{name}_async")(*positional, **keywords)
        assert calls == [(*positional, keywords)]
        assert result in (name, None)

    for name in METHOD_NAMES:
        asyncio.run(run(name))
