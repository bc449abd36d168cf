"""Tests of ServiceClient: what close leaves behind, threads and signals, and the use of connections."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from linecache import getline
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, Pending, datum, loop_threads, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer
from tinkerwire._connection import operation_runner
from tinkerwire._futures.event_loop import LOOP
from tinkerwire._lifecycle import connecting

pytestmark = pytest.mark.timeout(60)
CLIENT = os.path.dirname(tw.__file__)  # noqa: PTH120


def open_files() -> int:
    """Return the number of file descriptors of this process."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def use(client: tw.ServiceClient) -> None:
    """Run operations of several kinds."""
    training = client.create_lora_training_client("base")
    futures: list[Any] = [training.forward_backward([datum()], "cross_entropy"), training.optim_step(ADAM)]
    sampling = training.save_weights_and_get_sampling_client()
    futures += [sampling.sample(PROMPT, 1, PARAMS) for _ in range(10)]
    for future in futures:
        future.result(TEST_TIMEOUT_S)
    client.get_server_capabilities()


def start_all_operations(client: tw.ServiceClient) -> list[Any]:
    """Return futures that end only when the server responds."""
    training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
    sampler = training.save_weights_and_get_sampling_client()
    futures: list[Any] = [training.optim_step(ADAM) for _ in range(5)]
    futures += [training.forward_backward([datum()], "cross_entropy")]
    futures += [sampling.sample(PROMPT, 1, PARAMS) for _ in range(5)]
    futures += [sampling.compute_logprobs(PROMPT), sampler, sampler.sample(PROMPT, 1, PARAMS)]
    futures += [client.create_rest_client().list_training_runs()]
    return futures


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts files by /proc")
def test_close_leaves_no_thread_file_or_connection(server: ScriptedServer) -> None:
    """After close, no thread, file or socket of the client is left, and no connection at the server."""
    with open_client(server.url) as client:
        use(client)
    before = open_files()
    for _ in range(3):
        with open_client(server.url) as client:
            use(client)
            assert loop_threads()
            assert open_files() > before
        assert not loop_threads()
        # The server's ends of the connections are files of this process, too.
        wait_until(lambda: open_files() <= before, "the files are closed")


def test_unknown_finish_status_raises(server: ScriptedServer) -> None:
    """An invalid status or detail raises, and the client stays open."""
    with open_client(server.url) as client:
        with pytest.raises(
            ValueError, match="status: must be one of 'success', 'errored', 'interrupted', got 'failed'"
        ):
            client.close("failed")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="detail: expected a str, got 5"):
            client.close("success", 5)  # type: ignore[arg-type]
        client.get_server_capabilities()


def test_clients_are_futures_of_themselves(server: ScriptedServer) -> None:
    """A client works like a concurrent future and a coroutine, with the error of a failed creation."""
    with open_client(server.url) as client:
        for created in (client.create_lora_training_client("base"), client.create_sampling_client(base_model="base")):
            assert created.future().result(TEST_TIMEOUT_S) is created
            assert asyncio.run(created.coroutine()) is created
        server.rules["create_model"] = lambda _: ScriptedResponse(status=404)
        failed = client.create_lora_training_client("none")
        assert isinstance(failed.future().exception(TEST_TIMEOUT_S), tw.NotFoundError)
        with pytest.raises(tw.NotFoundError):
            asyncio.run(failed.coroutine())


@pytest.mark.parametrize("operation", ["retrieve_future", "optim_step", "asample", "training_runs"])
@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "beside another client"])
def test_pending_operations_end_with_a_clear_error(
    server: ScriptedServer, operation: str, is_alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operations that wait for a turn, a submission, a slot or a result fail at close with the reason."""
    # Close would wait for those that do not take notice.
    monkeypatch.setattr(operation_runner, "CLOSE_S", 10 * TEST_TIMEOUT_S)
    gate = Gate()

    def rule(request: RecordedRequest) -> ScriptedResponse:
        is_creation = request.headers.get("x-tinker-request-type") == "CreateModel"
        return (
            server.healthy_response(request)
            if is_creation
            else ScriptedResponse(server.healthy_response(request).body, gate=gate)
        )

    with ExitStack() as stack:
        second_client = None if is_alone else stack.enter_context(open_client(server.url))
        client = stack.enter_context(open_client(server.url, retry=tw.RetryConfig(max_connections=2)))
        server.rules[operation] = rule
        futures = start_all_operations(client)
        server.wait_for_requests(operation, 2 if operation == "retrieve_future" else 1)
        client.close().result(TEST_TIMEOUT_S)
        errors = [error for future in futures if (error := wait_for_error(future))]
        assert errors
        for error in errors:
            assert isinstance(error, tw.ClientClosedError)
            assert "was closed; create a new ServiceClient" in str(error)
        server.wait_for(lambda: server.active[operation] == 0, "the client hangs up")
        if second_client is not None:
            second_client.get_server_capabilities()
    gate.release()


def wait_for_error(future: Pending) -> tw.TinkerError | None:
    """Return the error of a future that has ended or is about to."""
    try:
        future.result(TEST_TIMEOUT_S)
    except tw.TinkerError as error:
        return error
    return None


def test_waiting_coroutines_end_at_close(server: ScriptedServer) -> None:
    """A coroutine that awaits a future gets the error when another thread closes the client."""
    gate = Gate()
    server.on_poll("OptimStep", lambda _: ScriptedResponse(gate=gate))

    async def wait(future: tw.APIFuture[Any]) -> None:
        with pytest.raises(tw.ClientClosedError):
            await future

    with open_client(server.url) as client, ThreadPoolExecutor(1) as pool:
        future = client.create_lora_training_client("base").optim_step(ADAM)
        job = pool.submit(asyncio.run, wait(future))
        server.wait_for(lambda: len(server.polls("OptimStep")) == 1)
        client.close().result(TEST_TIMEOUT_S)
        job.result(TEST_TIMEOUT_S)
    gate.release()


def test_repeated_close_returns_the_same_future(server: ScriptedServer) -> None:
    """Many threads and the context manager close once; the future cannot be cancelled."""
    with open_client(server.url) as keeper, open_client(server.url) as client:
        use(client)
        with ThreadPoolExecutor(8) as pool:
            futures = list(pool.map(lambda _: client.close(), range(16)))
        assert all(future is futures[0] for future in futures)
        assert not futures[0].cancel()
        assert futures[0].result(TEST_TIMEOUT_S) is None
        assert client.close("errored", "detail") is futures[0]
        keeper.get_server_capabilities()


def test_closed_clients_raise_client_closed_error(server: ScriptedServer) -> None:
    """Every method of every client of a closed service raises at once and sends nothing."""
    with open_client(server.url) as client:
        training, sampling = (
            client.create_lora_training_client("base"),
            client.create_sampling_client(base_model="base"),
        )
        rest = client.create_rest_client()
        training.result(TEST_TIMEOUT_S)
        sampling.result(TEST_TIMEOUT_S)
    number = len(server.requests)
    attempts = [
        lambda: client.create_lora_training_client("base"),
        lambda: client.create_sampling_client(base_model="base"),
        lambda: client.create_training_client_from_state("tinker://m1/weights/a"),
        client.get_server_capabilities,
        lambda: training.optim_step(ADAM),
        lambda: training.forward([datum()], "cross_entropy"),
        training.get_info,
        training.save_weights_and_get_sampling_client,
        lambda: sampling.sample(PROMPT, 1, PARAMS),
        rest.list_training_runs,
    ]
    for attempt in attempts:
        with pytest.raises(tw.ClientClosedError, match="was closed"):
            attempt()
    with pytest.raises(RuntimeError):
        training.optim_step(ADAM)
    assert len(server.requests) == number


def test_exception_passes_through_the_context_manager(server: ScriptedServer) -> None:
    """An exception in the block propagates, and the client is closed."""
    with pytest.raises(ZeroDivisionError), open_client(server.url) as client:
        raise ZeroDivisionError
    with pytest.raises(tw.ClientClosedError):
        client.get_server_capabilities()


def test_connections_are_reused(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A hundred sequential operations use one connection per traffic class."""
    training = client.create_lora_training_client("base")
    for _ in range(50):
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    sampling = client.create_sampling_client(base_model="base")
    for _ in range(50):
        sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    # session, training, training futures, sampling, sampling futures
    assert len({request.peer for request in server.requests}) == 5
    assert len({request.peer for request in server.named("optim_step")}) == 1


def test_threads_of_the_resolver_end(server: ScriptedServer) -> None:
    """The threads that resolve a host name end with the client."""
    with open_client(server.url.replace("127.0.0.1", "localhost")) as client:
        use(client)
        assert any(thread.name.startswith("asyncio_") for thread in threading.enumerate())
    wait_until(lambda: not loop_threads(), "all threads end")


class Stop(BaseException):
    """Exception of the signal handler."""


class StopAtLine:
    """Tracer that raises Stop at one line of the client's code, as a signal handler may; lines count from 0."""

    def __init__(self, number: int) -> None:
        self._remaining = number

    def __call__(self, frame: FrameType, event: str, argument: object) -> StopAtLine | None:
        """Raise at the chosen line; the signature of sys.settrace."""
        if not frame.f_code.co_filename.startswith(CLIENT):
            return None
        # No signal comes between a with block and its end, which counts as the line of its beginning.
        if event == "line" and not getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with "):
            self._remaining -= 1
            if self._remaining < 0:
                raise Stop
        return self


@pytest.mark.parametrize("kind", ["sample", "optim_step", "forward_backward", "list_training_runs"])
def test_signal_handler_may_raise_at_any_line(server: ScriptedServer, kind: str) -> None:
    """An operation may be interrupted anywhere: no warning follows, and the client still works."""
    with open_client(server.url) as client, warnings.catch_warnings():
        warnings.simplefilter("error")
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        rest = client.create_rest_client()
        starts: dict[str, Callable[[], tw.APIFuture[Any]]] = {
            "sample": lambda: sampling.sample(PROMPT, 1, PARAMS),
            "optim_step": lambda: training.optim_step(ADAM),
            "forward_backward": lambda: training.forward_backward([datum()], "cross_entropy"),
            "list_training_runs": rest.list_training_runs,
        }
        for number in itertools.count():
            before = sys.gettrace()
            sys.settrace(StopAtLine(number))
            try:
                future = starts[kind]()
            except Stop:
                continue
            finally:
                sys.settrace(before)
            break
        gc.collect()
        assert number > 5
        future.result(TEST_TIMEOUT_S)
        starts[kind]().result(TEST_TIMEOUT_S)
    wait_until(lambda: not loop_threads(), "the thread ends")


def test_close_during_close_ends_both(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A close within another one, for example by a signal handler, returns the same future; both end."""
    with open_client(server.url) as client:
        use(client)
        start, inner = LOOP.start, []

        def interrupted(work: Any) -> Any:
            monkeypatch.setattr(LOOP, "start", start)
            inner.append(client.close())
            inner[0].result(TEST_TIMEOUT_S)
            wait_until(lambda: not loop_threads(), "the loop is over")
            return start(work)

        monkeypatch.setattr(LOOP, "start", interrupted)
        assert client.close() is inner[0]
    assert not loop_threads()


def test_base_url_selects_transport_without_slow_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """``local`` selects the embedded server, other URLs HTTP; no slow module is imported."""
    assert type(connecting.open_transport("http://127.0.0.1:1", None)).__name__ == "HttpTransport"
    assert type(connecting.open_transport("local", None)).__name__ == "EmbeddedTransport"
    slow = ("aiohttp", "httpx", "numpy", "torch", "urllib.request", "cattrs", "google.protobuf", "tinkerwire._server")
    assert list_imported_modules("from tinkerwire import *; from tinkerwire.types import *").isdisjoint(slow)


def test_service_client_is_imported_without_connections_and_models() -> None:
    """Importing ServiceClient imports no model, connection or other client; a type imports only its family."""
    modules = list_imported_modules("import tinkerwire; tinkerwire.ServiceClient; tinkerwire.types.Datum")
    models = {name for name in modules if name.startswith("tinkerwire_generated.models.")}
    assert models == {"tinkerwire_generated.models.inputs"}
    deferred = ("_connection", "_transport", "_session", "_sampling.client", "_training.client", "_rest")
    assert modules.isdisjoint(f"tinkerwire.{name}" for name in deferred)
    assert modules.isdisjoint({"email.utils", "cattrs"})


def list_imported_modules(statements: str) -> set[str]:
    code = f"{statements}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize("package", ["filelock", "jsonschema_rs", "zstandard"])
def test_embedded_server_without_its_packages_names_the_extra(package: str) -> None:
    """A bare installation imports the client, and its error for ``local`` names the extra to install."""
    code = f"import sys; sys.modules[{package!r}] = None; import tinkerwire; tinkerwire.ServiceClient(base_url='local')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.rstrip().endswith(
        f"the embedded server needs the package {package}; install the extra: pip install 'tinkerwire[server]'"
    )


def test_invalid_url_or_wire_version_raises_at_once() -> None:
    """An invalid URL or wire version raises before anything starts."""
    for version in ("9.9.9", "new"):
        with pytest.raises(ValueError, match=version):
            tw.ServiceClient(base_url="http://127.0.0.1:1", wire_version=version)
    with pytest.raises(ValueError, match="is not an http"):
        tw.ServiceClient(base_url="ftp://127.0.0.1")
    assert not loop_threads()
