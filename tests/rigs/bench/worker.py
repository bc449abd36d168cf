"""One case with one client in a fresh process: `python worker.py MODULE CASE URL [SAMPLES [WIRE]]`.

MODULE is `tinker` or `tinkerwire`: both have the official names. CASE is import, sample, memory, sequential or
forward_backward. WIRE is the wire version that tinkerwire speaks, if it is not to find out. Prints one JSON object with
the figures.
CPU is user and system time of all threads of the process.
"""

import resource
import sys
import time


def measure_cpu_s():
    """Return the CPU seconds that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def read_memory_mib(field):
    """Return VmRSS (now) or VmHWM (at the peak) of this process."""
    with open("/proc/self/status") as status:  # noqa: PTH123 - pathlib must not be loaded before the import case
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(field))


# Nothing that the client could need is loaded before this point, so that the client's import pays for it.
_before = read_memory_mib("VmRSS"), measure_cpu_s(), time.perf_counter()
client = __import__(sys.argv[1])
client.ServiceClient  # noqa: B018 - a lazy package must load what the first line of a program uses
client.types.Datum  # noqa: B018
IMPORT = {
    "cpu_ms": (measure_cpu_s() - _before[1]) * 1000,
    "wall_ms": (time.perf_counter() - _before[2]) * 1000,
    "rss_mib": read_memory_mib("VmRSS"),
    "added_mib": read_memory_mib("VmRSS") - _before[0],
    "modules": len(sys.modules),
}

import asyncio  # noqa: E402
import gc  # noqa: E402
import json  # noqa: E402

import numpy as np  # noqa: E402

# One client loads numpy with its import and the other at its first use, so the figure with numpy is reported for both.
IMPORT["cpu_with_numpy_ms"] = (measure_cpu_s() - _before[1]) * 1000

PROMPT_TOKENS = 1000
SAMPLE_TOKENS = 256
AT_ONCE = 2000
DATUMS = 64
DATUM_TOKENS = 4096
STEPS = 3


def measure_work(work, count):
    """Run `work` and return its CPU and wall milliseconds per piece, and the memory that it adds at its peak."""
    start_mib, cpu, wall = read_memory_mib("VmRSS"), measure_cpu_s(), time.perf_counter()
    work()
    return {
        "cpu_ms": (measure_cpu_s() - cpu) * 1000 / count,
        "wall_ms": (time.perf_counter() - wall) * 1000 / count,
        "added_mib": read_memory_mib("VmHWM") - start_mib,
    }


def load_retry_config():
    """Return the class of retry options, which the official package does not export."""
    if client.__name__ == "tinkerwire":
        return client.RetryConfig
    from tinker.lib.retry_handler import RetryConfig  # noqa: PLC0415

    return RetryConfig


def make_prompts(count):
    """Return prompts of 1,000 tokens; beyond 2,000 they repeat, so that the prompts of the bench cost no memory."""
    distinct = np.random.default_rng(1).integers(0, 150_000, (min(count, 2000), PROMPT_TOKENS)).tolist()
    # Without this, full collections of garbage take 0.1 s to visit the two million numbers of the bench.
    gc.freeze()
    return [distinct[i % len(distinct)] for i in range(count)]


def create_sampler(service, count):
    """Return a sampling client for so many samples in flight, and the parameters of its samples."""
    sampler = service.create_sampling_client(
        base_model="stub/model", retry_config=load_retry_config()(max_connections=max(count, AT_ONCE))
    )
    return sampler, client.types.SamplingParams(max_tokens=SAMPLE_TOKENS, temperature=1.0)


def sample(service, count):
    """Take samples, 2,000 at once: a prompt of 1,000 tokens each, 256 tokens and logprobs back."""
    sampler, params = create_sampler(service, count)
    prompts = make_prompts(count)

    def run(tokens):
        for start in range(0, len(tokens), AT_ONCE):
            futures = [
                sampler.sample(client.types.ModelInput.from_ints(prompt), num_samples=1, sampling_params=params)
                for prompt in tokens[start : start + AT_ONCE]
            ]
            for future in futures:
                sequence = future.result().sequences[0]
                check(len(list(sequence.tokens)), SAMPLE_TOKENS, "tokens of a sample")
                check(len(list(sequence.logprobs)), SAMPLE_TOKENS, "logprobs of a sample")

    run(prompts[:50])
    return measure_work(lambda: run(prompts), count)


def memory(service, count):
    """Take all samples at once, and keep the results as arrays."""
    sampler, params = create_sampler(service, count)
    prompts = make_prompts(count)
    results = []

    def run(tokens):
        futures = [
            sampler.sample(client.types.ModelInput.from_ints(prompt), num_samples=1, sampling_params=params)
            for prompt in tokens
        ]
        for future in futures:
            sequence = future.result().sequences[0]
            results.append((sequence.tokens_np, sequence.logprobs_np))
            check(len(results[-1][0]), SAMPLE_TOKENS, "tokens of a sample")

    run(prompts[:50])
    return measure_work(lambda: run(prompts), count)


def sequential(service, count):
    """Take samples one after the other."""
    sampler, params = create_sampler(service, count)
    prompt = client.types.ModelInput.from_ints(make_prompts(1)[0])

    async def run(number):
        for _ in range(number):
            await sampler.sample_async(prompt, num_samples=1, sampling_params=params)

    asyncio.run(run(20))
    return measure_work(lambda: asyncio.run(run(count)), count)


def forward_backward(service, _):
    """64 datums of 4,096 tokens with three numpy tensors, logprobs back; the mean of three calls."""
    training = service.create_lora_training_client("stub/model", rank=32)
    rng = np.random.default_rng(1)
    shape = (DATUMS, DATUM_TOKENS)
    prompts = rng.integers(0, 150_000, shape).tolist()
    targets = rng.integers(0, 150_000, shape)
    logprobs = -rng.exponential(1.0, shape).astype(np.float32)
    advantages = rng.normal(0.0, 1.0, shape).astype(np.float32)

    def run(count):
        datums = [
            client.types.Datum(
                model_input=client.types.ModelInput.from_ints(prompts[i]),
                loss_fn_inputs={
                    "target_tokens": targets[i],
                    "logprobs": logprobs[i],
                    "advantages": advantages[i],
                },
            )
            for i in range(count)
        ]
        outputs = training.forward_backward(datums, "importance_sampling").result().loss_fn_outputs
        check(len(outputs), count, "outputs of a forward_backward")
        for output in outputs:
            check(output["logprobs"].to_numpy().shape, (DATUM_TOKENS,), "shape of the logprobs")

    run(2)
    return measure_work(lambda: [run(DATUMS) for _ in range(STEPS)], STEPS)


def check(value, expected, label):
    """Refuse to measure a client that does not do the work."""
    if value != expected:
        raise SystemExit(f"{label}: {value!r} instead of {expected!r}")


CASES = {"sample": sample, "memory": memory, "sequential": sequential, "forward_backward": forward_backward}


def main():
    """Run the case that the command line names."""
    case = sys.argv[2]
    figures = IMPORT
    if case != "import":
        options = {"wire_version": sys.argv[5]} if len(sys.argv) > 5 else {}
        service = client.ServiceClient(base_url=sys.argv[3], api_key="tml-bench", **options)
        count = int(sys.argv[4]) if len(sys.argv) > 4 else 0
        figures = CASES[case](service, count)
    sys.stdout.write(json.dumps(figures | {"version": client.__version__}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
