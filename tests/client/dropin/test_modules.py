"""Modules, names and warnings of official releases under the drop-in: each is here, or absent for a reason."""

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
"""By release: the modules with the names that each defines, and the methods that warn of their end."""
ABSENT_NAMES: dict[str, str] = {
    r".*\.(logger|log|[A-Z])": "no API: a logger or a type variable",
    r"tinker\._compat\.(field_\w+|get_model_config)": "they read pydantic's own objects, which models here do not have",
    r"tinker\._response\.(?!(Async)?APIResponse$)\w+": "the inside of the low-level client",
    r"tinker\.lib\.api_future_impl\.QueueState(Observer)?": "ServiceClient(on_wait=) is called with the queue's state",
    r"tinker\.lib\.experimental\.experimental": "a decorator of the SDK's own",
    r"tinker\.lib\.public_interfaces\.custom_loss\.\w+_(inputs|graph|handle|loss)": "steps of create_custom_loss",
    r"tinker\.lib\.public_interfaces\.training_client\.(MODEL_ID_NOT_SET_ERROR|fetch_training_info)": "the inside",
    r"tinker\.lib\.public_interfaces\.training_client\.MAX_CHUNK_\w+": "ServiceClient(chunk_limits=) sets them",
    r"tinker\.lib\.retry_handler\.(RetryHandler|is_retryable_status_code)": "the clients retry by themselves",
    r"tinker\.lib\.telemetry\.(?!Telemetry$)\w+": "the inside of telemetry",
    r"tinker\.types\.(topk_logprobs|sample_response)\.(MASK_LOGPROB|topk_to_lists)": "lists are made by the types",
    r"tinker(\._exceptions)?\.Sidecar\w+": "samples are not drawn in a process of their own",
}
"""Names of modules that are here, which are not, by pattern, and why."""
SCRIPT = """
import importlib, json, sys
import tinkerwire.dropin
tinkerwire.dropin.install()
found = {}
for name, names in json.load(sys.stdin).items():
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        found[name] = str(error)
    else:
        found[name] = [each for each in names if not hasattr(module, each)]
json.dump(found, sys.stdout)
"""


def python(script: str, given: str = "") -> str:
    """Return what a script prints in a fresh interpreter with warnings as they are by default."""
    run = subprocess.run(
        [sys.executable, "-c", script], input=given, capture_output=True, text=True, check=False, timeout=120
    )
    assert not run.returncode, run.stderr
    return run.stdout


def missing() -> Iterator[str]:
    """Yield each official module and name that has neither a counterpart nor a reason."""
    for version, facts in FACTS.items():
        for module, outcome in json.loads(python(SCRIPT, json.dumps(facts["modules"]))).items():
            if isinstance(outcome, str):
                # The package of a module is imported first, and may be what is absent.
                reason = find_reason(module)
                if not outcome.startswith("tinkerwire has no module tinker.") or not outcome.endswith(f": {reason}"):
                    yield f"{version} {module}: {outcome}"
                continue
            for name in outcome:
                if not any(re.fullmatch(pattern, f"{module}.{name}") for pattern in ABSENT_NAMES):
                    yield f"{version} {module}.{name}"


def test_every_official_module_is_here_or_has_a_reason() -> None:
    """So has every name that one defines, in 0.16.1, 0.25.0 and 0.38.0."""
    assert not list(missing())


def below(path: str) -> set[str]:
    """Return the official modules that are or lie in a package."""
    modules = {module for facts in FACTS.values() for module in facts["modules"]}
    return {module for module in modules if f"{module}.".startswith(f"{path}.")}


def test_reasons_are_of_official_modules_that_are_absent() -> None:
    """No reason is left over from a module that is here now or never was."""
    assert not [path for path in ABSENT if not below(path) or find_target(path) is not None]
    names = {f"{module}.{name}" for facts in FACTS.values() for module, all in facts["modules"].items() for name in all}
    assert not [pattern for pattern in ABSENT_NAMES if not any(re.fullmatch(pattern, name) for name in names)]


def test_submodules_can_be_imported_by_any_statement() -> None:
    """``import a.b``, ``from a import b`` and an attribute of the package lead to the same module."""
    told = python(
        "import tinkerwire.dropin\ntinkerwire.dropin.install()\n"
        "import tinker\nlazy = tinker.proto.tinker_public_pb2\n"
        "import tinker.auth, tinker.proto\nfrom tinker.proto import tinker_public_pb2 as pb\n"
        "from tinker import APIResponse, auth\n"
        "import tinkerwire\n"
        "print(lazy is pb, tinker.auth.get_tinker_token is tinkerwire.auth.get_tinker_token,"
        " APIResponse is tinkerwire.APIResponse)\n"
    )
    assert told == "True True True\n"


def test_an_api_response_is_for_annotations_only() -> None:
    """It takes a parameter, nothing is an instance of it, and making one says where responses are."""
    assert tw.APIResponse[int]
    assert not isinstance({}, tw.APIResponse)
    for cls in (tw.APIResponse, tw.AsyncAPIResponse):
        with pytest.raises(TypeError, match=rf"{cls.__name__} has no instances.*\.response"):
            cls()


def test_the_deprecated_methods_are_the_official_ones() -> None:
    """The table has each method that warns in 0.38.0, and no other, and all of them exist."""
    ours = {f"{client}.{name}" for table in (REPLACED, EXPERIMENTAL) for client in table for name in table[client]}
    assert ours == {*FACTS["0.38.0"]["deprecated"]}
    for each in ours:
        client, _, name = each.partition(".")
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
print(json.dumps([[each.category.__name__, str(each.message), each.filename] for each in caught]))
"""


def test_deprecated_methods_warn_their_callers_under_the_drop_in() -> None:
    """Each call of the user's gives one FutureWarning that points at it and names the replacement."""
    caught = json.loads(python(WARNINGS))
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
    """This package keeps them, and its own users get no warning."""
    script = WARNINGS.replace("import tinkerwire.dropin\ntinkerwire.dropin.install()\n", "")
    assert python(script.replace("import tinker\n", "import tinkerwire as tinker\n")) == "[]\n"
