"""Tests of recordings: programs that are recorded against a real server, and replayed with nothing running."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support.embedded import embedded_http_server

KEY = "tml-recorded-secret-0123"
EXAMPLE = Path(__file__).parents[2] / "docs/examples/rollouts_processes.py"
PROGRAM = """
    import hashlib, json, sys, threading
    import numpy as np
    import tinkerwire as tw

    def datum(*tokens, weight=1.0):
        inputs = {"target_tokens": [token + 1 for token in tokens], "weights": [weight] * len(tokens)}
        return tw.Datum(model_input=tw.ModelInput.from_ints(list(tokens)), loss_fn_inputs=inputs)

    def negative(data, logprobs):
        return -sum(float(x.sum()) for x in logprobs), {}, [-np.ones_like(x) for x in logprobs]

    def train(service, number, results):
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=2)
        found = []
        for step in range(2):
            trained = training.forward_backward([datum(number, step, weight=WEIGHT)], "cross_entropy")
            training.optim_step(tw.AdamParams(learning_rate=1e-2))
            found.append(trained.result().metrics["loss:sum"])
        sampling = training.save_weights_and_get_sampling_client()
        futures = [sampling.sample(tw.ModelInput.from_ints([number, i % 2]), 2, tw.SamplingParams(max_tokens=4))
                   for i in range(6)]
        found.append([[(s.tokens, s.logprobs) for s in f.result().sequences] for f in futures])
        found.append(training.forward_backward_custom([datum(5, 6)], negative, arrays="numpy").result().metrics)
        path = training.save_state("end").result().path
        resumed = service.create_training_client_from_state_with_optimizer(path)
        found.append(resumed.forward([datum(7, number)], "cross_entropy").result().metrics)
        results[str(number)] = found

    WEIGHT = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    results = {}
    with tw.ServiceClient(user_metadata={"team": "a"}) as service:
        service.get_server_capabilities()
        threads = [threading.Thread(target=train, args=(service, number, results)) for number in range(3)]
        for thread in threads:
            thread.start()
            if sys.argv[1] == "in turn":
                thread.join()
        for thread in threads:
            thread.join()
        results["runs"] = len(service.create_rest_client().list_training_runs().result().training_runs)
    print(hashlib.sha256(json.dumps(results, sort_keys=True).encode()).hexdigest(), len(results))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a program that trains and samples."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return path


def run(*command: object, url: str = "", limit_s: float = 100.0) -> subprocess.CompletedProcess[str]:
    """Run Python with a server's address."""
    environment = {**os.environ, "TINKER_API_KEY": KEY, **({"TINKER_BASE_URL": url} if url else {})}
    arguments = [sys.executable, *map(str, command)]
    return subprocess.run(arguments, capture_output=True, text=True, env=environment, timeout=limit_s, check=False)


def record(tape: Path, url: str, *command: object) -> subprocess.CompletedProcess[str]:
    """Record a program of Python."""
    return run("-m", "tinkerwire", "record", "--to", tape, "--", sys.executable, *command, url=url)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "options",
    [
        ("--wire", "0.38.0", "--flag", "proto_compress_fwdbwd=true"),
        ("--wire", "0.38.0", "--seed", "3", "--inject-faults", "p_429=0.1,p_5xx=0.05,p_lost_reply=0.05"),
        ("--wire", "0.6.3"),
    ],
    ids=["protobuf", "failures", "JSON"],
)
def test_program_gets_the_same_results_without_a_server(
    program: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Three threads race for models and samplers, in another order in each replay."""
    tape = tmp_path / "run.tape"
    with embedded_http_server(*options) as url:
        recorded = record(tape, url, program, "at once")
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout.endswith(" 4\n"), recorded.stderr
    for order in ("at once", "in turn"):
        replayed = run(program, order, url=f"replay:{tape}")
        assert replayed.stdout == recorded.stdout, replayed.stderr
    assert KEY not in tape.read_text()
    assert KEY.encode().hex() not in tape.read_text()


@pytest.mark.timeout(200)
def test_program_that_asks_something_else_gets_the_first_difference(program: Path, tmp_path: Path) -> None:
    tape = tmp_path / "run.tape"
    with embedded_http_server() as url:
        assert record(tape, url, program, "in turn").returncode == 0
    replayed = run(program, "in turn", "0.5", url=f"replay:{tape}")
    assert (
        "ReplayError: replay:" in replayed.stderr
        and "forward_backward (POST /api/v1/forward_backward): the request differs from the recorded one; "
        "the first field that differs is forward_backward_input.data[0].loss_fn_inputs.weights.data[0]: "
        "recorded 1.0, got 0.5"
        in replayed.stderr
    ), replayed.stderr


@pytest.mark.timeout(200)
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_copies_of_a_sampler_in_processes_are_replayed(tmp_path: Path, method: str) -> None:
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("the system does not fork")
    tape = tmp_path / "run.tape"
    with embedded_http_server() as url:
        recorded = record(tape, url, EXAMPLE, url, method, "3", "30")
    assert recorded.stdout == "240\n", recorded.stderr
    for _ in range(2):
        replayed = run(EXAMPLE, f"replay:{tape}", method, "3", "30")
        assert replayed.stdout == "240\n", replayed.stderr
    more = run(EXAMPLE, f"replay:{tape}", method, "3", "33")
    assert "ReplayError" in more.stderr
    assert "this one is additional" in more.stderr


POOL = """
    import gc, multiprocessing, pickle, sys, time
    import tinkerwire as tw

    def work(pickled, counts):
        for count in counts:
            sampling = pickle.loads(pickled)
            futures = [sampling.sample(tw.ModelInput.from_ints([1, 2]), 1, tw.SamplingParams(max_tokens=2))
                       for _ in range(count)]
            for future in futures:
                future.result()
            # A copy that nothing refers to is closed soon.
            del sampling, futures, future
            gc.collect()
            time.sleep(0.3)

    if __name__ == "__main__":
        with tw.ServiceClient() as client:
            sampling = client.create_sampling_client(base_model="tinkerwire/byte-nano").result()
            context = multiprocessing.get_context("spawn")
            processes = [context.Process(target=work, args=(pickle.dumps(sampling), list(map(int, counts.split("+")))))
                         for counts in sys.argv[1:]]
            for process in processes:
                process.start()
            for process in processes:
                process.join()
            print([process.exitcode for process in processes])
"""


@pytest.mark.timeout(200)
def test_copies_are_replayed_whichever_process_has_them(tmp_path: Path) -> None:
    """A process that closes one copy and opens another, as in a pool, goes on with the same replay."""
    program, tape = tmp_path / "pool.py", tmp_path / "run.tape"
    program.write_text(textwrap.dedent(POOL))
    with embedded_http_server() as url:
        recorded = record(tape, url, program, "4+4", "4")
    assert recorded.stdout == "[0, 0]\n", recorded.stderr
    for layout in (("4", "4", "4"), ("4+4+4",)):
        replayed = run(program, *layout, url=f"replay:{tape}")
        assert replayed.stdout == f"{[0] * len(layout)}\n", replayed.stderr
    for layout in (("5", "4", "4"), ("4+5", "4"), ("4+4+5",)):
        more = run(program, *layout, url=f"replay:{tape}")
        assert "this one is additional" in more.stderr, more.stdout


@pytest.mark.timeout(200)
def test_recording_of_a_killed_program_replays_up_to_its_end(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import os, sys
            import tinkerwire as tw
            datum = tw.Datum(model_input=tw.ModelInput.from_ints([1, 2]),
                             loss_fn_inputs={"target_tokens": [2, 3], "weights": [1.0, 1.0]})
            training = tw.ServiceClient().create_lora_training_client("tinkerwire/byte-nano", rank=2)
            for step in range(int(sys.argv[1])):
                print(training.forward_backward([datum], "cross_entropy").result().metrics["loss:sum"], flush=True)
            if sys.argv[2] == "die":
                os.kill(os.getpid(), 9)
            """
        )
    )
    tape = tmp_path / "run.tape"
    with embedded_http_server() as url:
        recorded = record(tape, url, program, "3", "die")
    assert recorded.returncode == 128 + signal.SIGKILL
    tape.write_bytes(tape.read_bytes() + b'\n{"at":12,"meth')
    replayed = run(program, "3", "end", url=f"replay:{tape}")
    assert replayed.stdout == recorded.stdout, replayed.stderr
    longer = run(program, "4", "end", url=f"replay:{tape}")
    assert longer.stdout == recorded.stdout
    assert re.search(r"sent \d such requests, and this one is additional; the recording was cut off", longer.stderr)
