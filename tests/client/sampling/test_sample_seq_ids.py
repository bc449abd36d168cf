"""seq_ids of samples: each copy of a client has a separate range, from the server or at random."""

from __future__ import annotations

import asyncio
import copy
import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._sampling.sample_seq_ids import SampleSeqIds, join_session
from tinkerwire._wire.dialect import Dialect
from tinkerwire_generated.constants import SEQ_IDS_PER_COPY

pytestmark = pytest.mark.timeout(60)
JOIN_OPTIONS = {"wire_version": "0.38.0", "client_config": {"sample_join_sampling_session": True}}


def sample_twice(*clients: tw.SamplingClient) -> None:
    """Sample twice with each client."""
    for future in [client.sample(PROMPT, 1, PARAMS) for client in clients for _ in range(2)]:
        future.result(TEST_TIMEOUT_S)


def sample_seq_ids(server: ScriptedServer) -> list[int]:
    """Return the seq_ids of all samples, sorted."""
    return sorted(body["seq_id"] for body in server.bodies("asample"))


def test_copies_use_separate_random_ranges(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """If the server does not number copies, each copy, and each copy of a copy, has a random range."""
    original = client.create_sampling_client(base_model="base")
    first = copy.copy(original)
    sample_twice(original, first, copy.copy(first), copy.deepcopy(original))
    seq_ids = sample_seq_ids(server)
    assert seq_ids[:2] == [0, 1]
    ranges = {seq_id // SEQ_IDS_PER_COPY for seq_id in seq_ids}
    assert len(ranges) == 4
    assert max(ranges) <= SEQ_IDS_PER_COPY
    assert [seq_id % SEQ_IDS_PER_COPY for seq_id in seq_ids] == [0, 1] * 4
    assert not server.named("join_sampling_session")


def test_server_numbers_a_copy_before_its_first_sample(server: ScriptedServer) -> None:
    """With the flag set, a copy requests its number before its first sample, and only then."""
    server.rules["join_sampling_session"] = in_order(
        ScriptedResponse({"client_counter": 7}), ScriptedResponse({"client_counter": 8})
    )
    with open_client(server.url, **JOIN_OPTIONS) as client:
        original = client.create_sampling_client(base_model="base")
        first, second, _ = (copy.copy(original) for _ in range(3))
        sample_twice(original, first)
        sample_twice(second)
    assert sample_seq_ids(server) == [number * SEQ_IDS_PER_COPY + i for number in (0, 7, 8) for i in (0, 1)]
    assert [body["sampling_session_id"] for body in server.bodies("join_sampling_session")] == ["sampler1"] * 2


@pytest.mark.parametrize(("status", "is_fatal"), [(404, False), (405, False), (403, True)])
def test_missing_join_endpoint_falls_back_to_random_ranges(server: ScriptedServer, status: int, is_fatal: bool) -> None:
    """Without the endpoint the range is random; any other error fails the sample, and the next sample retries."""
    server.rules["join_sampling_session"] = lambda _: ScriptedResponse(status=status)
    with open_client(server.url, **JOIN_OPTIONS) as client:
        clone = copy.copy(client.create_sampling_client(base_model="base"))
        for _ in range(2):
            future = clone.sample(PROMPT, 1, PARAMS)
            assert isinstance(future.exception(TEST_TIMEOUT_S), tw.PermissionDeniedError) is is_fatal
    assert len(server.named("join_sampling_session")) == (2 if is_fatal else 1)


def test_copy_joins_before_its_first_sample() -> None:
    """A failed join is repeated by the next one; a known number is kept."""
    joins = []

    async def join() -> int:
        joins.append(None)
        await asyncio.sleep(0)
        if len(joins) == 1:
            raise tw.TinkerError("no")
        return 3

    async def run() -> None:
        ids = SampleSeqIds(join)
        with pytest.raises(tw.TinkerError, match="no"):
            await ids.join()
        assert ids.copy_number is None
        for _ in range(2):
            await ids.join()
            assert ids.copy_number == 3
        assert [ids.next() for _ in range(4)] == [3 * SEQ_IDS_PER_COPY + i for i in range(4)]
        assert len(joins) == 2

    asyncio.run(run())


def test_original_client_counts_from_zero() -> None:
    """It is copy 0, and joins nothing."""
    ids = SampleSeqIds()
    asyncio.run(ids.join())
    assert ids.copy_number == 0
    assert [ids.next() for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("is_copy", [False, True])
def test_samples_take_their_seq_ids_in_the_order_of_their_calls(server: ScriptedServer, is_copy: bool) -> None:
    """Also those that begin while others wait for the creation of the client, or for the number of a copy."""
    slow = "join_sampling_session" if is_copy else "create_sampling_session"
    healthy = {"client_counter": 7, "sampling_session_id": "sampler1"}
    with open_client(server.url, **JOIN_OPTIONS) as client:
        original = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        for _ in range(20):
            seen, gate, futures = len(server.bodies("asample")), Gate(), []
            server.rules[slow] = lambda _, gate=gate: ScriptedResponse(healthy, gate=gate)
            sampling = copy.copy(original) if is_copy else client.create_sampling_client(base_model="base")
            for number in range(100):
                if number == 5:
                    gate.release()
                futures.append(sampling.sample(tw.ModelInput.from_ints([number]), 1, PARAMS))
                time.sleep(0.0001)
            for future in futures:
                future.result(TEST_TIMEOUT_S)
            bodies = sorted(server.bodies("asample")[seen:], key=lambda body: body["seq_id"])
            assert [body["prompt"]["chunks"][0]["tokens"][0] for body in bodies] == list(range(100))


@pytest.mark.parametrize(("drawn", "number"), [(0, 1), (SEQ_IDS_PER_COPY - 1, SEQ_IDS_PER_COPY)])
def test_random_number_of_a_copy_is_in_range(monkeypatch: pytest.MonkeyPatch, drawn: int, number: int) -> None:
    """It is at least 1, as 0 is the original client, and at most the number of ranges."""
    limits = []

    def draw(limit: int) -> int:
        limits.append(limit)
        return drawn

    monkeypatch.setattr("secrets.randbelow", draw)

    async def dialect() -> Dialect:
        return Dialect.from_client_config(None)

    connection: Any = SimpleNamespace(dialect=dialect)
    assert asyncio.run(join_session(connection, "s")) == number
    assert limits == [SEQ_IDS_PER_COPY]


@pytest.mark.parametrize(("flag", "lacking"), [(True, "join_sampling_session"), (False, "")])
def test_server_is_not_asked_for_a_number_that_it_cannot_give(flag: bool, lacking: str) -> None:
    """Both the flag and the operation are necessary; the fake connection has no method to call a server."""

    async def dialect() -> Any:
        config = SimpleNamespace(sample_join_sampling_session=flag)
        return SimpleNamespace(config=config, may_have_operation=lambda name: name != lacking)

    connection: Any = SimpleNamespace(dialect=dialect)
    assert 1 <= asyncio.run(join_session(connection, "s")) <= SEQ_IDS_PER_COPY


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_forked_processes_draw_different_ranges() -> None:
    """Forked processes with the same random state draw different numbers; a collision has odds of 1 in 1e9."""
    code = (
        "import os, random, sys\n"
        "from tinkerwire._sampling import sample_seq_ids\n"
        "import asyncio, types\n"
        "from tinkerwire._wire.dialect import Dialect\n"
        "async def dialect(): return Dialect.from_client_config(None)\n"
        "connection = types.SimpleNamespace(dialect=dialect)\n"
        "random.seed(1)\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.write(1, b'%d\\n' % asyncio.run(sample_seq_ids.join_session(connection, 's')))\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=TEST_TIMEOUT_S, check=True
    )
    assert len(set(run.stdout.split())) == 3
