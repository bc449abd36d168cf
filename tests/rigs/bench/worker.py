"""One case with one client in a fresh process: `python worker.py MODULE import|sample|forward_backward URL`.

MODULE is `tinker` or `tinkerwire`: both have the official names. Prints one JSON object with the figures.
CPU is user and system time of all threads of the process.
"""

import resource
import sys
import time


def cpu_s():
    """Return the CPU seconds that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def memory_mib(field):
    """Return VmRSS (now) or VmHWM (at the peak) of this process."""
    with open("/proc/self/status") as status:  # noqa: PTH123 - pathlib must not be loaded before the import case
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(field))


# Nothing that the client could need is loaded before this point, so that the client's import pays for it.
_before = memory_mib("VmRSS"), cpu_s(), time.perf_counter()
client = __import__(sys.argv[1])
client.ServiceClient  # noqa: B018 - a lazy package must load what the first line of a program uses
client.types.Datum  # noqa: B018
IMPORT = {
    "cpu_ms": (cpu_s() - _before[1]) * 1000,
    "wall_ms": (time.perf_counter() - _before[2]) * 1000,
    "rss_mib": memory_mib("VmRSS"),
    "added_mib": memory_mib("VmRSS") - _before[0],
    "modules": len(sys.modules),
}

import json  # noqa: E402

import numpy as np  # noqa: E402

# One client loads numpy with its import and the other at its first use, so the figure with numpy is reported for both.
IMPORT["cpu_with_numpy_ms"] = (cpu_s() - _before[1]) * 1000

SAMPLES = 1000
PROMPT_TOKENS = 1000
ANSWER_TOKENS = 256
DATUMS = 64
DATUM_TOKENS = 4096
STEPS = 3


def measured(work, count):
    """Run `work` and return its CPU and wall milliseconds per piece, and memory before and at the peak."""
    start_mib, cpu, wall = memory_mib("VmRSS"), cpu_s(), time.perf_counter()
    work()
    return {
        "cpu_ms": (cpu_s() - cpu) * 1000 / count,
        "wall_ms": (time.perf_counter() - wall) * 1000 / count,
        "start_mib": start_mib,
        "peak_mib": memory_mib("VmHWM"),
    }


def sample(service):
    """1,000 samples at once: a prompt of 1,000 tokens each, 256 tokens and logprobs back."""
    sampler = service.create_sampling_client(base_model="stub/model")
    params = client.types.SamplingParams(max_tokens=ANSWER_TOKENS, temperature=1.0)
    prompts = np.random.default_rng(1).integers(0, 150_000, (SAMPLES, PROMPT_TOKENS)).tolist()

    def run(tokens):
        futures = [
            sampler.sample(client.types.ModelInput.from_ints(prompt), num_samples=1, sampling_params=params)
            for prompt in tokens
        ]
        for future in futures:
            sequence = future.result().sequences[0]
            check(len(list(sequence.tokens)), ANSWER_TOKENS, "tokens of a sample")
            check(len(list(sequence.logprobs)), ANSWER_TOKENS, "logprobs of a sample")

    run(prompts[:50])
    return measured(lambda: run(prompts), SAMPLES)


def forward_backward(service):
    """64 datums of 4,096 tokens with three numpy tensors, logprobs back; the mean of three calls."""
    training = service.create_lora_training_client("stub/model", rank=32)
    rng = np.random.default_rng(1)
    shape = (DATUMS, DATUM_TOKENS)
    prompts = rng.integers(0, 150_000, shape).tolist()
    targets = rng.integers(0, 150_000, shape)
    logprobs = -rng.exponential(1.0, shape).astype(np.float32)
    advantages = rng.normal(0.0, 1.0, shape).astype(np.float32)

    def run(count):
        data = [
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
        outputs = training.forward_backward(data, "importance_sampling").result().loss_fn_outputs
        check(len(outputs), count, "outputs of a forward_backward")
        for output in outputs:
            check(output["logprobs"].to_numpy().shape, (DATUM_TOKENS,), "shape of the logprobs")

    run(2)
    return measured(lambda: [run(DATUMS) for _ in range(STEPS)], STEPS)


def check(value, expected, what):
    """Refuse to measure a client that does not do the work."""
    if value != expected:
        raise SystemExit(f"{what}: {value!r} instead of {expected!r}")


def main():
    """Run the case that the command line names."""
    case = sys.argv[2]
    figures = IMPORT
    if case != "import":
        service = client.ServiceClient(base_url=sys.argv[3], api_key="tml-bench")
        figures = {"sample": sample, "forward_backward": forward_backward}[case](service)
    sys.stdout.write(json.dumps(figures | {"version": client.__version__}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
