"""Numbers of samples: those of copies lie in ranges of their own, given by the server where it gives any."""

from __future__ import annotations

import copy
import os
import subprocess
import sys

import pytest

import tinkerwire as tw
from support.clients import PARAMS, PROMPT, open_client
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._sampling.sample_seq_ids import SEQ_IDS_PER_COPY

pytestmark = pytest.mark.timeout(60)
JOINS = {"wire_version": "0.38.0", "client_config": {"sample_join_sampling_session": True}}


def draw(*clients: tw.SamplingClient) -> None:
    """Two samples of each."""
    for future in [client.sample(PROMPT, 1, PARAMS) for client in clients for _ in range(2)]:
        future.result(PATIENCE_S)


def numbers(server: ScriptedServer) -> list[int]:
    """The seq_ids of all samples."""
    return sorted(body["seq_id"] for body in server.bodies("asample"))


def test_copies_count_in_ranges_by_chance(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Without a server that numbers copies, each copy, and each copy of a copy, has a range of its own."""
    original = client.create_sampling_client(base_model="base")
    first = copy.copy(original)
    draw(original, first, copy.copy(first), copy.deepcopy(original))
    found = numbers(server)
    assert found[:2] == [0, 1]
    ranges = {number // SEQ_IDS_PER_COPY for number in found}
    assert len(ranges) == 4
    assert max(ranges) <= SEQ_IDS_PER_COPY
    assert [number % SEQ_IDS_PER_COPY for number in found] == [0, 1] * 4
    assert not server.named("join_sampling_session")


def test_copies_ask_the_server_once_before_their_first_sample(server: ScriptedServer) -> None:
    """Where the flag says so, the server numbers the copies; who never samples never asks."""
    server.rules["join_sampling_session"] = in_order(
        ScriptedResponse({"client_counter": 7}), ScriptedResponse({"client_counter": 8})
    )
    with open_client(server.url, **JOINS) as client:
        original = client.create_sampling_client(base_model="base")
        first, second, _ = (copy.copy(original) for _ in range(3))
        draw(original, first)
        draw(second)
    assert numbers(server) == [number * SEQ_IDS_PER_COPY + i for number in (0, 7, 8) for i in (0, 1)]
    assert [body["sampling_session_id"] for body in server.bodies("join_sampling_session")] == ["sampler1"] * 2


@pytest.mark.parametrize(("status", "is_fatal"), [(404, False), (405, False), (403, True)])
def test_a_server_that_has_no_numbers_after_all(server: ScriptedServer, status: int, is_fatal: bool) -> None:
    """A server without the call leaves it to chance; other refusals fail the sample, and the next asks again."""
    server.rules["join_sampling_session"] = lambda _: ScriptedResponse(status=status)
    with open_client(server.url, **JOINS) as client:
        clone = copy.copy(client.create_sampling_client(base_model="base"))
        for _ in range(2):
            future = clone.sample(PROMPT, 1, PARAMS)
            assert isinstance(future.exception(PATIENCE_S), tw.PermissionDeniedError) is is_fatal
    assert len(server.named("join_sampling_session")) == (2 if is_fatal else 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_forked_processes_do_not_share_their_chance() -> None:
    """Numbers drawn in processes forked from one state differ: by chance they would once in a thousand million."""
    code = (
        "import os, random, sys\n"
        "from tinkerwire._sampling import sample_seq_ids as clones\n"
        "from tinkerwire._connection import connection\n"
        "import asyncio, types\n"
        "from tinkerwire._wire.dialect import found\n"
        "async def dialect(): return found(None)\n"
        "link = types.SimpleNamespace(dialect=dialect)\n"
        "random.seed(1)\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.write(1, b'%d\\n' % asyncio.run(clones.join_session(link, 's')))\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert len(set(run.stdout.split())) == 3
