"""Recorded modules, names and deprecations of official releases, and messages of two packages in one process.

The name keeps the module out of the fast tests: run `pytest tests/rigs/official/public_suite.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.rigs.official.venv import ensure_official_python

pytestmark = pytest.mark.timeout(1800)
FACTS = json.loads((Path(__file__).parents[2] / "facts" / "public" / "modules.json").read_text())
CLASH = """
import sys
import tinkerwire.dropin.proto.tinker_public_pb2 as ours
from tinkerwire.dropin.proto.request_conv import forward_backward_request_to_proto as our_conversion
from tinker.proto import tinker_public_pb2 as theirs
from tinker.proto.request_conv import forward_backward_request_to_proto as their_conversion
import tinker.types, tinkerwire.types
def request(types):
    tokens = types.TensorData(data=[4, 5], dtype="int64", shape=[2])
    weights = types.TensorData(data=[0.5, 1.0], dtype="float32", shape=[2])
    datum = types.Datum(
        model_input=types.ModelInput.from_ints([3, 4]), loss_fn_inputs={"target_tokens": tokens, "weights": weights}
    )
    inputs = types.ForwardBackwardInput(data=[datum], loss_fn="cross_entropy", loss_fn_config={"a": 1.0, "b": "x"})
    return types.ForwardBackwardRequest(forward_backward_input=inputs, model_id="m", seq_id=3)
data = [
    filled.SerializeToString(deterministic=True)
    for filled in (our_conversion(request(tinkerwire.types)), their_conversion(request(tinker.types)))
]
assert data[0] == data[1], data
for name, theirs_enum in (("DType", theirs.DType), ("StopReason", theirs.StopReason)):
    assert getattr(ours, name).items() == theirs_enum.items(), name
for name in [name for name in dir(theirs) if hasattr(getattr(theirs, name), "DESCRIPTOR") and name[0] != "_"]:
    pair = [getattr(module, name).DESCRIPTOR for module in (ours, theirs)]
    if hasattr(pair[0], "fields"):
        first, second = ([(f.name, f.number, f.type, f.has_presence) for f in each.fields] for each in pair)
        assert sorted(first) == sorted(second), name
print("equal")
"""


@pytest.mark.parametrize("version", FACTS)
def test_recorded_facts_are_those_of_the_release(version: str) -> None:
    """The facts that tests/client/dropin/test_modules.py uses equal the release."""
    worker = Path(__file__).with_name("public_worker.py")
    run = subprocess.run(
        [str(ensure_official_python(version)), str(worker)], capture_output=True, text=True, check=False
    )
    assert not run.returncode, run.stderr
    assert json.loads(run.stdout) == FACTS[version]


def test_messages_of_both_packages_live_in_one_process() -> None:
    """Both packages have the same fields and bytes, and neither disturbs the other."""
    site = subprocess.run(
        [str(ensure_official_python("0.38.0")), "-c", "import tinker; print(tinker.__path__[0])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    # Ours first; the release's own dependencies come from its environment.
    path = [*filter(None, sys.path), str(Path(site).parent)]
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}\n{CLASH}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout == "equal\n", run.stderr
