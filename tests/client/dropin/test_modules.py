"""Tests of the modules, names and warnings of official releases: each exists under the drop-in or has a reason."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tinkerwire as tw
from tinkerwire.dropin.deprecations import EXPERIMENTAL, REPLACED
from tinkerwire.dropin.paths import ABSENT, find_reason, find_target

FACTS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "facts" / "public" / "modules.json").read_text())
"""By release: the modules with the names that each defines, and the deprecated methods."""
ABSENT_NAMES: dict[str, str] = {
    r".*\.(logger|log|[A-Z])": "not an API: a logger or a type variable",
    r"tinker\._compat\.(field_\w+|get_model_config)": "helpers for pydantic's objects, which models here do not have",
    r"tinker\._response\.(?!(Async)?APIResponse$)\w+": "internals of the low-level client",
    r"tinker\.lib\.api_future_impl\.QueueState(Observer)?": "ServiceClient(on_wait=) is called with the queue's state",
    r"tinker\.lib\.experimental\.experimental": "an internal decorator of the SDK",
    r"tinker\.lib\.public_interfaces\.custom_loss\.\w+_(inputs|graph|handle|loss)": "steps of create_custom_loss",
    r"tinker\.lib\.public_interfaces\.training_client\.(MODEL_ID_NOT_SET_ERROR|fetch_training_info)": "internals",
    r"tinker\.lib\.public_interfaces\.training_client\.MAX_CHUNK_\w+": "ServiceClient(chunk_limits=) sets them",
    r"tinker\.lib\.retry_handler\.(RetryHandler|is_retryable_status_code)": "the clients retry internally",
    r"tinker\.lib\.telemetry\.(?!Telemetry$)\w+": "internals of telemetry",
    r"tinker\.types\.(topk_logprobs|sample_response)\.(MASK_LOGPROB|topk_to_lists)": "the types convert to lists",
    r"tinker(\._exceptions)?\.Sidecar\w+": "sampling does not use a separate process",
}
"""Reason for each missing name of an existing module, by pattern."""
SCRIPT = """
import importlib, json, sys
import tinkerwire.dropin
tinkerwire.dropin.install()
outcomes = {}
for name, names in json.load(sys.stdin).items():
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        outcomes[name] = str(error)
    else:
        outcomes[name] = [attribute for attribute in names if not hasattr(module, attribute)]
json.dump(outcomes, sys.stdout)
"""


def run_python(script: str, stdin: str = "") -> str:
    """Return the standard output of a script in a new interpreter with the default filter of warnings."""
    run = subprocess.run(
        [sys.executable, "-c", script], input=stdin, capture_output=True, text=True, check=False, timeout=120
    )
    assert not run.returncode, run.stderr
    return run.stdout


def find_unexplained() -> Iterator[str]:
    """Yield each official module and name that has neither a counterpart nor a reason."""
    for version, facts in FACTS.items():
        for module, outcome in json.loads(run_python(SCRIPT, json.dumps(facts["modules"]))).items():
            if isinstance(outcome, str):
                # The error may be about the package, which is imported first.
                reason = find_reason(module)
                if not outcome.startswith("tinkerwire has no module tinker.") or not outcome.endswith(f": {reason}"):
                    yield f"{version} {module}: {outcome}"
                continue
            for name in outcome:
                if not any(re.fullmatch(pattern, f"{module}.{name}") for pattern in ABSENT_NAMES):
                    yield f"{version} {module}.{name}"


def test_every_official_module_and_name_exists_or_has_a_reason() -> None:
    """The facts cover the releases 0.16.1, 0.25.0 and 0.38.0."""
    assert {*FACTS} == {"0.16.1", "0.25.0", "0.38.0"}
    assert not list(find_unexplained())


def find_modules(path: str) -> set[str]:
    """Return the official modules of a path: the module itself, or a package with all its modules."""
    modules = {module for facts in FACTS.values() for module in facts["modules"]}
    return {module for module in modules if f"{module}.".startswith(f"{path}.")}


def test_reasons_belong_to_absent_official_modules() -> None:
    """Each reason is for a module or name that an official release has; no such module exists here."""
    assert not [path for path in ABSENT if not find_modules(path) or find_target(path) is not None]
    names = {
        f"{module}.{name}" for facts in FACTS.values() for module, public in facts["modules"].items() for name in public
    }
    assert not [pattern for pattern in ABSENT_NAMES if not any(re.fullmatch(pattern, name) for name in names)]


def test_submodules_can_be_imported_by_any_statement() -> None:
    """``import a.b``, ``from a import b`` and an attribute of the package import the same module."""
    output = run_python(
        "import tinkerwire.dropin\ntinkerwire.dropin.install()\n"
        "import tinker\nlazy = tinker.proto.tinker_public_pb2\n"
        "import tinker.auth, tinker.proto\nfrom tinker.proto import tinker_public_pb2 as pb\n"
        "from tinker import APIResponse, auth\n"
        "import tinkerwire\n"
        "print(lazy is pb, tinker.auth.get_tinker_token is tinkerwire.auth.get_tinker_token,"
        " APIResponse is tinkerwire.APIResponse)\n"
    )
    assert output == "True True True\n"


def test_api_response_is_for_annotations_only() -> None:
    """APIResponse is generic and has no instances; its constructor raises an error that names the remedy."""
    assert tw.APIResponse[int]
    assert not isinstance({}, tw.APIResponse)
    for cls in (tw.APIResponse, tw.AsyncAPIResponse):
        with pytest.raises(TypeError, match=rf"{cls.__name__} has no instances.*\.response"):
            cls()


def test_deprecated_methods_equal_those_of_the_official_sdk() -> None:
    """The table has exactly the methods that warn in 0.38.0, and all of them exist."""
    methods = {f"{client}.{name}" for table in (REPLACED, EXPERIMENTAL) for client in table for name in table[client]}
    assert methods == {*FACTS["0.38.0"]["deprecated"]}
    for method in methods:
        client, _, name = method.partition(".")
        assert callable(getattr(getattr(tw, client), name))


WARNINGS = """
import asyncio, json, warnings
import tinkerwire.dropin
tinkerwire.dropin.install()
import tinker
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with tinker.ServiceClient(base_url="local") as client:
        client.create_rest_client()
        client.get_server_capabilities()
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=2)
        path = training.save_state("a").result(60).path
        asyncio.run(training.load_state_async(path)).result(60)
        asyncio.run(client.create_lora_training_client_async("tinkerwire/byte-nano"))
    rest = tinker.RestClient(base_url="local")
    asyncio.run(rest.list_sessions_async())
    rest.list_sessions().result(60)
    rest.close()
print(json.dumps([[warning.category.__name__, str(warning.message), warning.filename] for warning in caught]))
"""


def test_deprecated_methods_warn_their_callers_under_the_drop_in() -> None:
    """Each call emits one FutureWarning, which has the caller's file and names the replacement."""
    caught = json.loads(run_python(WARNINGS))
    calls = [text.partition("(")[0] for _, text, _ in caught]
    assert calls == [
        "ServiceClient.create_rest_client",
        "ServiceClient.get_server_capabilities",
        "TrainingClient.load_state_async",
        "ServiceClient.create_lora_training_client_async",
        "RestClient.list_sessions_async",
    ]
    assert {(category, file) for category, _, file in caught} == {("FutureWarning", "<string>")}
    assert "use tinker.RestClient() instead" in caught[0][1]


def test_methods_do_not_warn_without_the_drop_in() -> None:
    """The methods are deprecated in the official SDK only."""
    script = WARNINGS.replace("import tinkerwire.dropin\ntinkerwire.dropin.install()\n", "")
    assert run_python(script.replace("import tinker\n", "import tinkerwire as tinker\n")) == "[]\n"
