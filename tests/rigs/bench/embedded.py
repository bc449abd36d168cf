"""The embedded server: speed beside torch, requests per second, and memory over many samples: `make bench-embedded`.

The section goes to docs/benchmark.md.
"""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ROOT, ensure_venv

import tinkerwire as tw
from tinkerwire import types
from tinkerwire._server.engine.config import BASE_MODELS

ROWS, POSITIONS = 8, 128
SEQUENCES, PROMPT_TOKENS, NEW_TOKENS = 16, 16, 64
PASSES, ROUNDS = 20, 5
SAMPLES, AT_ONCE = 20_000, 200
MEMORY_POINTS = (1_000, 5_000, 10_000, 20_000)
KEY = "tml-bench"
TIMEOUT_S = 600.0


def measure_training(service: tw.ServiceClient, model: str) -> float:
    """Return tokens per second of forward_backward, with the next batch submitted before the result of the last."""
    training = service.create_lora_training_client(model, rank=8, seed=0)
    tokens = np.random.default_rng(0).integers(0, 256, (ROWS, POSITIONS + 1))
    data = [
        types.Datum(
            model_input=types.ModelInput.from_ints(row[:-1]),
            loss_fn_inputs={"target_tokens": row[1:], "weights": np.ones(POSITIONS, np.float32)},
        )
        for row in tokens
    ]
    training.forward_backward(data, "cross_entropy").result(TIMEOUT_S)
    started = time.perf_counter()
    for future in [training.forward_backward(data, "cross_entropy") for _ in range(PASSES)]:
        future.result(TIMEOUT_S)
    return PASSES * ROWS * POSITIONS / (time.perf_counter() - started)


def measure_sampling(service: tw.ServiceClient, model: str, requests: int, num_samples: int) -> float:
    """Return tokens per second of samples that are requested at once."""
    sampling = service.create_sampling_client(base_model=model)
    prompt = types.ModelInput.from_ints(list(range(PROMPT_TOKENS)))
    params = types.SamplingParams(max_tokens=NEW_TOKENS, temperature=1.0)

    def run() -> int:
        futures = [sampling.sample(prompt, num_samples, params) for _ in range(requests)]
        results = [future.result(TIMEOUT_S) for future in futures]
        return sum(len(sequence.tokens) for response in results for sequence in response.sequences)

    run()
    started = time.perf_counter()
    tokens = sum(run() for _ in range(ROUNDS))
    return tokens / (time.perf_counter() - started)


def measure_memory(url: str, pid: int) -> tuple[float, dict[int, float]]:
    """Return samples of one token per second over HTTP, and the server's memory in MiB after numbers of samples."""
    memory: dict[int, float] = {}
    prompt, params = types.ModelInput.from_ints([1, 2, 3]), types.SamplingParams(max_tokens=1)
    started = time.perf_counter()
    with tw.ServiceClient(base_url=url, api_key=KEY) as service:
        sampling = service.create_sampling_client(base_model="tinkerwire/byte-nano")
        for done in range(AT_ONCE, SAMPLES + 1, AT_ONCE):
            for future in [sampling.sample(prompt, 1, params) for _ in range(AT_ONCE)]:
                future.result(TIMEOUT_S)
            if done in MEMORY_POINTS:
                memory[done] = _memory_mib(pid)
    return SAMPLES / (time.perf_counter() - started), memory


def _memory_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


@contextmanager
def run_server(*options: str) -> Iterator[tuple[str, int]]:
    """Run `tinkerwire serve` in its own process; yield its address and process id."""
    command = [sys.executable, "-m", "tinkerwire", "serve", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            yield next(word for word in words if word.startswith("http://")).rstrip("/."), process.pid
        finally:
            process.terminate()


def render_report() -> str:
    """Measure everything and return the section."""
    torch_python = ensure_venv("torch", ROOT / "tests/rigs/official/requirements-torch.txt", installer="pip")
    lines = [
        "## Embedded server",
        "",
        f"Made by `make bench-embedded`, {platform.machine()}, Python {platform.python_version()}; tokens per second, "
        f"medians of 3. Training: forward_backward of {ROWS} x {POSITIONS} tokens, rank 8, through the client. "
        f"Sampling: {NEW_TOKENS} tokens after a prompt of {PROMPT_TOKENS}, through the client. torch computes the same "
        "model without client, server and adapter.",
        "",
        "| model | work | embedded server | torch |",
        "|---|---|---:|---:|",
    ]
    for name, config in BASE_MODELS.items():
        shape = (config.d_model, config.n_layers, config.n_heads, config.d_ff, config.vocab_size)
        work_sizes = (ROWS, POSITIONS, SEQUENCES, PROMPT_TOKENS, NEW_TOKENS)
        worker = str(Path(__file__).with_name("torch_worker.py"))
        command = [str(torch_python), worker, json.dumps(shape), json.dumps(work_sizes)]
        runs = [
            json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(3)
        ]
        torch = {work: statistics.median(run[work] for run in runs) for work in ("train", "sample")}
        with tw.ServiceClient(base_url="local") as service:
            trained = statistics.median(measure_training(service, name) for _ in range(3))
            lines.append(f"| {name} | forward_backward | {trained:,.0f} | {torch['train']:,.0f} |")
            for requests, num_samples in ((1, SEQUENCES), (SEQUENCES, 1), (1, 1)):
                work = f"{requests} request{'s' * (requests > 1)} of {num_samples} sample{'s' * (num_samples > 1)}"
                figure = statistics.median(measure_sampling(service, name, requests, num_samples) for _ in range(3))
                beside = f"{torch['sample']:,.0f}" if requests * num_samples == SEQUENCES else ""
                lines.append(f"| {name} | {work} | {figure:,.0f} | {beside} |")
    with tempfile.TemporaryDirectory() as folder:
        for label, options in (("", ()), (" with a folder", ("--folder", folder))):
            with run_server(*options) as (url, pid):
                per_s, memory = measure_memory(url, pid)
            sizes = ", ".join(f"{size:.0f} MiB after {count:,}" for count, size in memory.items())
            lines += [
                "",
                f"`tinkerwire serve`{label}: {per_s:,.0f} samples of one token per second over HTTP, {AT_ONCE} at once "
                f"(two requests each). Its memory: {sizes}.",
            ]
    lines += [
        "",
        "The server retains results and keys for an hour, or up to the bytes of `RetentionPolicy`: the newest in "
        "memory, the others in temporary files.",
    ]
    lines += ["", f"torch {runs[0]['version']}, {platform.system()}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print and keep the section."""
    text = render_report()
    write_section(DOCS / "benchmark.md", "embedded", text, title="Benchmark")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
