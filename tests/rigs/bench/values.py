"""Cases of the bench that need no server: `python values.py MODULE` prints the CPU milliseconds of each.

A case makes its values before the clock starts and converts them afterwards.

A case gets the client module, whose names are those of the official SDK, and numpy, and returns the work to measure.
"""

import gc
import json
import pickle
import sys
import time

DATUMS = 1000
DATUM_TOKENS = 256
TOKENS = 100_000
SEQUENCES, POSITIONS, TOP_K = 8, 4096, 20
PROMPT_POSITIONS = 32_768
LOSS_INPUTS = {"target_tokens": "int64", "logprobs": "float32", "advantages": "float32"}


def make_columns(np):
    """Return prompts as lists, and the arrays of the loss by key, each with a row per datum."""
    rng = np.random.default_rng(1)
    shape = (DATUMS, DATUM_TOKENS)
    arrays = {
        "target_tokens": rng.integers(0, 150_000, shape),
        "logprobs": -rng.exponential(1.0, shape).astype(np.float32),
        "advantages": rng.normal(0.0, 1.0, shape).astype(np.float32),
    }
    return rng.integers(0, 150_000, shape).tolist(), arrays


def build_datums(client, prompts, rows):
    """Return the datums of prompts and of their loss inputs."""
    datum, from_ints = client.types.Datum, client.types.ModelInput.from_ints
    return [
        datum(model_input=from_ints(prompt), loss_fn_inputs=dict(zip(LOSS_INPUTS, row, strict=True)))
        for prompt, row in zip(prompts, rows, strict=True)
    ]


def datums_numpy(client, np):
    """1,000 datums from numpy arrays."""
    prompts, arrays = make_columns(np)
    rows = list(zip(*(list(array) for array in arrays.values()), strict=True))
    return lambda: build_datums(client, prompts, rows)


def datums_tensor_data(client, np):
    """1,000 datums from TensorData of lists."""
    prompts, arrays = make_columns(np)
    tensor = client.types.TensorData
    rows = list(zip(*(array.tolist() for array in arrays.values()), strict=True))
    dtypes = list(LOSS_INPUTS.values())

    def work():
        shape = [DATUM_TOKENS]
        tensors = [
            tuple(tensor(data=values, dtype=dtype, shape=shape) for values, dtype in zip(row, dtypes, strict=True))
            for row in rows
        ]
        return build_datums(client, prompts, tensors)

    return work


def datums_tensor_numpy(client, np):
    """1,000 datums from TensorData of arrays."""
    prompts, arrays = make_columns(np)
    from_numpy = client.types.TensorData.from_numpy
    rows = list(zip(*(list(array) for array in arrays.values()), strict=True))
    return lambda: build_datums(client, prompts, [tuple(map(from_numpy, row)) for row in rows])


def datums_lists(client, np):
    """1,000 datums from lists."""
    prompts, arrays = make_columns(np)
    rows = list(zip(*(array.tolist() for array in arrays.values()), strict=True))
    return lambda: build_datums(client, prompts, rows)


def to_ints(client, np):
    """Read the tokens of an input of 100,000 tokens."""
    prompt = client.types.ModelInput.from_ints(np.random.default_rng(1).integers(0, 150_000, TOKENS).tolist())
    return prompt.to_ints


def make_matrices(client, np, rows):
    """Return top-k matrices whose first row has no tokens."""
    rng = np.random.default_rng(1)
    tokens = rng.integers(1, 150_000, (rows, TOP_K)).astype(np.int32)
    logprobs = -rng.exponential(1.0, (rows, TOP_K)).astype(np.float32)
    tokens[0], logprobs[0] = 0, -99999.0
    return load_topk_class(client)(tokens, logprobs)


def load_topk_class(client):
    """Return the class of top-k matrices, which the official package does not export under types."""
    name = f"{client.__name__}.types.topk_logprobs"
    if client.__name__ == "tinkerwire":
        name = "tinkerwire_base.list_array"
    return __import__(name, fromlist=["TopkLogprobs"]).TopkLogprobs


def topk_lists(client, np):
    """Top-k lists of 8 sequences of 4,096 tokens."""
    pairs = [make_matrices(client, np, POSITIONS) for _ in range(SEQUENCES)]
    sequence = client.types.SampledSequence

    def work():
        sequences = [
            sequence(stop_reason="stop", sequence_id="s", tokens_np=topk.token_ids[:, 0], topk_logprobs_np=topk)
            for topk in pairs
        ]
        return [sampled.topk_logprobs for sampled in sequences]

    return work


def topk_prompt(client, np):
    """Top-k lists of a prompt of 32,768 tokens."""
    topk = make_matrices(client, np, PROMPT_POSITIONS)
    response = client.types.SampleResponse
    return lambda: response(sequences=[], topk_prompt_logprobs_np=topk).topk_prompt_logprobs


def dumps(client, np):
    """1,000 prompts dumped to JSON and back."""
    model_input = client.types.ModelInput
    inputs = [model_input.from_ints(prompt) for prompt in make_columns(np)[0]]
    return lambda: [model_input.model_validate_json(item.model_dump_json()) for item in inputs]


def pickles(client, np):
    """1,000 datums pickled and unpickled."""
    prompts, arrays = make_columns(np)
    rows = list(zip(*(list(array) for array in arrays.values()), strict=True))
    datums = build_datums(client, prompts, rows)
    return lambda: pickle.loads(pickle.dumps(datums))


CASES = {
    "datums_numpy": datums_numpy,
    "datums_tensor_data": datums_tensor_data,
    "datums_tensor_numpy": datums_tensor_numpy,
    "datums_lists": datums_lists,
    "to_ints": to_ints,
    "topk_lists": topk_lists,
    "topk_prompt": topk_prompt,
    "dumps": dumps,
    "pickles": pickles,
}
REPEATS = 5


def measure_fastest_ms(work, clock):
    """Run `work` several times and return its least CPU milliseconds, garbage collection included."""
    work()
    times = []
    for _ in range(REPEATS):
        gc.collect()
        start = clock()
        result = work()
        times.append((clock() - start) * 1000)
        del result
    return min(times)


def main():
    """Run all cases with the client that the command line names."""
    client = __import__(sys.argv[1])
    client.ServiceClient  # noqa: B018  (a lazy package loads at first use)
    import numpy as np  # noqa: PLC0415

    figures = {name: measure_fastest_ms(case(client, np), time.process_time) for name, case in CASES.items()}
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
