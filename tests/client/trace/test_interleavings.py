"""Random programs against a failing server: each operation is in the trace once, in order, and without secrets."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import tinkerwire as tw
from client.trace.conftest import NANO
from tinkerwire._trace.reading import read_trace
from tinkerwire._trace.summary import PHASE_NAMES
from tinkerwire.local import EmbeddedServer, EmbeddedTransport, FaultInjection

KEY = "tml-secret-0123456789abcdef"
HEADER = "hidden-header-value"
SECRET_TOKENS = [31, 73, 11, 97, 59]
"""Tokens of all prompts and datums; their text is never in the trace."""
NAME = "confidential-name"
ACTIONS = ("forward", "forward_backward", "optim_step", "sample", "logprobs", "cancel", "save", "capabilities", "wait")
KINDS = {
    "forward": "Forward",
    "forward_backward": "ForwardBackward",
    "optim_step": "OptimStep",
    "sample": "Sample",
    "logprobs": "Sample",
    "cancel": "Sample",
    "save": "SaveWeights",
    "capabilities": "get_server_capabilities",
}
FAULTS = st.builds(
    FaultInjection,
    seed=st.integers(0, 1000),
    p_408=st.sampled_from([0.0, 0.1]),
    p_429=st.sampled_from([0.0, 0.1]),
    p_5xx=st.sampled_from([0.0, 0.1]),
    p_reset=st.sampled_from([0.0, 0.1]),
    p_lost_reply=st.sampled_from([0.0, 0.1]),
)


def start(
    action: str, number: int, service: tw.ServiceClient, training: tw.TrainingClient, sampling: tw.SamplingClient
) -> tw.APIFuture[object]:
    """Start one operation."""
    prompt, params = tw.ModelInput.from_ints(SECRET_TOKENS), tw.SamplingParams(max_tokens=2, seed=number)
    inputs = {"target_tokens": SECRET_TOKENS, "weights": [1.0] * len(SECRET_TOKENS)}
    batch = [tw.Datum(model_input=prompt, loss_fn_inputs=inputs)] * (number % 3 + 1)
    if action == "forward":
        return training.forward(batch, "cross_entropy")
    if action == "forward_backward":
        return training.forward_backward(batch, "cross_entropy")
    if action == "optim_step":
        return training.optim_step(tw.AdamParams(learning_rate=1e-3))
    if action == "logprobs":
        return sampling.compute_logprobs(prompt)
    if action == "save":
        return training.save_state(f"{NAME}-{number}")
    if action == "capabilities":
        return service._capabilities()
    future = sampling.sample(prompt, 1, params)
    if action == "cancel":
        future.cancel()
    return future


@settings(max_examples=15)
@given(actions=st.lists(st.sampled_from(ACTIONS), max_size=25), faults=FAULTS, max_datums=st.sampled_from([1, 128]))
def test_each_operation_is_there_once(actions: list[str], faults: FaultInjection, max_datums: int) -> None:
    with tempfile.TemporaryDirectory() as folder, EmbeddedServer(fault_injection=faults) as server:
        path = Path(folder, "run.trace")
        with tw.ServiceClient(
            base_url="local",
            transport=EmbeddedTransport(server),
            api_key=KEY,
            default_headers_overrides={"x-hidden": HEADER},
            retry=tw.RetryConfig(retry_delay_base=0.001, retry_delay_max=0.01, max_attempts=100),
            chunk_limits=tw.ChunkLimits(max_datums=max_datums),
            trace=path,
        ) as service:
            training = service.create_lora_training_client(NANO, rank=4)
            sampling = service.create_sampling_client(base_model=NANO)
            futures: list[tw.APIFuture[object]] = []
            for number, action in enumerate(actions):
                if action != "wait":
                    futures.append(start(action, number, service, training, sampling))
                elif futures:
                    futures[-1].exception()
        trace, content = read_trace(path), path.read_bytes()

    expected = Counter(KINDS[action] for action in actions if action != "wait")
    expected += Counter(["CreateModel", "CreateSamplingSession"])
    assert Counter(operation.kind for operation in trace.operations) == expected
    assert len({operation.number for operation in trace.operations}) == len(trace.operations)
    assert (trace.unreadable, trace.lost, trace.omitted) == (0, 0, 0)
    states = {"done": "done", "failed": "failed", "cancelled": "cancelled"}
    asked = [operation for operation in trace.operations if not operation.kind.startswith("Create")]
    assert Counter(operation.outcome for operation in asked) == Counter(states[future.state] for future in futures)
    for operation in trace.operations:
        times = [operation.asked, *(event[1] for event in operation.events), operation.end]
        assert times == sorted(times)
        assert len(operation.summary.phases) == len(PHASE_NAMES)
        assert abs(sum(operation.summary.phases) - operation.duration) < 1e-6
    text = ",".join(map(str, SECRET_TOKENS)).encode()
    for secret in (KEY.encode(), HEADER.encode(), NAME.encode(), text, bytes(SECRET_TOKENS)):
        assert secret not in content
