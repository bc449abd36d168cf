"""Tests of public names, methods, parameters and defaults against the official SDK 0.38.0 and older ones.

Code that calls the official names can call the names here.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import inspect
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import tinkerwire as tw
from support.clients import datum
from support.embedded import embedded_http_server

Facts = dict[str, Any]
FACTS: dict[str, Facts] = {
    version: json.loads((Path(__file__).parents[1] / "facts" / "public" / f"{version}.json").read_text())
    for version in ("0.4.1", "0.16.1", "0.25.0", "0.38.0")
}
"""By release: exports, and by class and method the parameters: name, kind, and the default where there is one."""
DIFFERENCES = {
    "ServiceClient.__exit__": "the with statement gives its arguments by place",
    "ServiceClient.holder": "the inside of the official SDK",
    "TrainingClient.__init__": "made by ServiceClient only",
    "SamplingClient.__init__": "made by other clients only",
    "SamplingClient.create": "the inside of the official SDK",
    "SamplingClient.on_queue_state_change": "the inside of the official SDK",
    "RestClient.__init__": "what a ServiceClient gives it is a connection, and called so",
    "AdminClient.__init__": "as RestClient.__init__",
}
"""Intended differences from 0.38.0, with reasons."""
INSIDE = "the official SDK used to sample in a separate process"
MOVED = "0.38.0 has base_model in its place; a dict there is rejected, use user_metadata="
OLDER_DIFFERENCES = {
    "SidecarDiedError": INSIDE,
    "SidecarError": INSIDE,
    "SidecarIPCError": INSIDE,
    "SidecarStartupError": INSIDE,
    "ServiceClient.create_training_client_from_state": MOVED,
    "ServiceClient.create_training_client_from_state_async": MOVED,
    "ServiceClient.create_training_client_from_state_with_optimizer": MOVED,
    "ServiceClient.create_training_client_from_state_with_optimizer_async": MOVED,
    "TrainingClient.forward_backward_custom": "loss_type_input defaults to None, which means logprobs, too",
    "TrainingClient.forward_backward_custom_async": "as forward_backward_custom",
    "TrainingClient.on_queue_state_change": "the inside of the official SDK",
    "TrainingClient.optim_step": "by place adam_params is called optim_params; by name it is taken, too",
    "TrainingClient.optim_step_async": "as optim_step",
}
"""Intended differences from older releases."""
TYPES: Facts = json.loads((Path(__file__).parents[1] / "facts" / "0.38.0.json").read_text())
TYPE_DIFFERENCES = {
    "Datum.loss_fn_inputs": "is required: every loss reads some",
    "ForwardBackwardOutput.metrics": "is required: every server sends some, missing ones are logged",
    "OptimStepRequest.optim_params": "is called as on the wire, adam_params or optimizer_params",
}
"""Intended differences of type arguments from those of 0.38.0. Arguments that hold the same twice, once as a
list and once as an array, differ by type; tests/base/mixins/test_sample_compat.py has them."""
DUPLICATED = ("SampleResponse", "SampledSequence", "TensorData")
OLDER = {
    tw.ServiceClient: ["create_rest_client", "get_server_capabilities", "get_server_capabilities_async"],
    tw.TrainingClient: ["unload_model", "forward_async", "load_state", "load_state_with_optimizer_async"],
    tw.SamplingClient: ["sample_async", "compute_logprobs_async"],
    tw.RestClient: [
        "get_audit_log",
        "get_billing_usage",
        "download_checkpoint_archive",
        "download_checkpoint_archive_from_tinker_path",
        "get_checkpoint_archive_url",
        "get_checkpoint_archive_url_from_tinker_path_async",
        "get_current_checkpoint_storage_usage",
    ],
}
"""Names that the official SDK has dropped or is about to, which servers still serve."""
KINDS = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "rest",
    inspect.Parameter.VAR_KEYWORD: "more",
}


def list_parameters(method: Any) -> list[list[Any]]:
    """Return the parameters of a method in the form of the facts."""
    return [
        [parameter.name, KINDS[parameter.kind], *([] if parameter.default is parameter.empty else [parameter.default])]
        for parameter in inspect.signature(method).parameters.values()
        if parameter.name != "self"
    ]


def find_unsupported(official: list[list[Any]], actual: list[list[Any]]) -> Iterator[str]:
    """Return the reasons why a call that the official method accepts would fail here."""
    by_place = [parameter for parameter in actual if parameter[1] == "positional"]
    by_name = {parameter[0]: parameter for parameter in actual}
    for place, (name, kind, *default) in enumerate(official):
        parameter = by_name.get(name)
        if parameter is None or (kind == "positional" and (place >= len(by_place) or by_place[place] is not parameter)):
            yield f"{name} is missing or out of place"
        elif default and parameter[2:] != default:
            yield f"{name} defaults to {parameter[2:]}, not {default}"
    names = {parameter[0] for parameter in official}
    yield from (f"{name} is required" for name, _, *default in actual if name not in names and not default)


def find_differences(facts: Facts) -> Iterator[tuple[str, str]]:
    """Return each name that differs from the official one, and the difference."""
    for name in facts["exports"]:
        if name not in tw.__all__:
            yield name, "is not exported"
    for kind, methods in facts["classes"].items():
        for name, official in methods.items():
            method = getattr(getattr(tw, kind), name, None)
            if method is None or (official is None) == callable(method):
                yield f"{kind}.{name}", "is missing"
                continue
            if official is None:
                continue
            reasons = list(find_unsupported(official, list_parameters(method)))
            if (name.endswith("_async") or name == "coroutine") != inspect.iscoroutinefunction(method):
                reasons.append("is async, or is not")
            if reasons:
                yield f"{kind}.{name}", "; ".join(reasons)


def test_differences_have_reasons() -> None:
    """The list of reasons equals the list of differences."""
    actual = dict(find_differences(FACTS["0.38.0"]))
    assert not {name: difference for name, difference in actual.items() if name not in DIFFERENCES}
    assert not [name for name in DIFFERENCES if name not in actual]


def test_names_and_parameters_of_older_releases_exist() -> None:
    """The names, parameters and defaults of older releases exist, but for those with a reason."""
    actual = {
        name: difference
        for version in ("0.4.1", "0.16.1", "0.25.0")
        for name, difference in find_differences(FACTS[version])
    }
    reasons = {**DIFFERENCES, **OLDER_DIFFERENCES}
    assert not {name: difference for name, difference in actual.items() if name not in reasons}
    assert not [name for name in OLDER_DIFFERENCES if name not in actual]


def find_type_differences() -> Iterator[str]:
    """Return each argument of an official type that the type here does not accept or cannot omit."""
    described = [member for group in ("types", "inmemory_types") for member in TYPES[group].items()]
    for name, fact in described:
        # Its private state has no public name.
        if fact["kind"] not in ("pydantic", "dataclass") or name.startswith("_") or name in DUPLICATED:
            continue
        our_parameters = inspect.signature(getattr(tw.types, name)).parameters
        for field, detail in fact["fields"].items():
            if field not in our_parameters or (
                not detail["required"] and our_parameters[field].default is inspect.Parameter.empty
            ):
                yield f"{name}.{field}"


def test_types_take_the_arguments_of_the_official_ones() -> None:
    """Arguments have the official names, and are required only where the official ones are."""
    assert sorted(find_type_differences()) == sorted(TYPE_DIFFERENCES)


OFFICIAL_RETRY = {
    "max_connections": 1000,
    "progress_timeout": 7200,
    "retry_delay_base": 0.5,
    "retry_delay_max": 10.0,
    "jitter_factor": 0.25,
    "enable_retry_logic": True,
    "enable_stuck_detection": True,
}
"""The settings of 0.38.0 and their defaults, in order; retryable_exceptions, the last, holds other classes."""


def test_retry_settings_equal_the_official_ones() -> None:
    """Order and defaults equal those of 0.38.0, and positional arguments work."""
    settings = attrs.asdict(tw.RetryConfig())
    assert list(settings)[:8] == [*OFFICIAL_RETRY, "retryable_exceptions"]
    assert {name: settings[name] for name in OFFICIAL_RETRY} == OFFICIAL_RETRY
    assert tw.RetryConfig(200) == tw.RetryConfig(max_connections=200)
    config = tw.RetryConfig(7, 60.0, 0.1, 2.0, 0.5, False, False, (TimeoutError,))
    assert [getattr(config, name) for name in [*OFFICIAL_RETRY, "retryable_exceptions"]] == [
        *(7, 60.0, 0.1, 2.0, 0.5, False, False, (TimeoutError,))
    ]
    with pytest.raises(TypeError):
        tw.RetryConfig(7, 60.0, 0.1, 2.0, 0.5, False, False, (TimeoutError,), 3)  # type: ignore[misc]


def test_retry_settings_are_a_dataclass() -> None:
    """The functions of dataclasses accept them, and replaced settings are validated."""
    config = tw.RetryConfig(max_connections=3, max_attempts=4)
    replaced = dataclasses.replace(config, progress_timeout=5.0)
    assert replaced == tw.RetryConfig(max_connections=3, max_attempts=4, progress_timeout=5.0)
    assert dataclasses.is_dataclass(tw.RetryConfig)
    assert dataclasses.asdict(config) == attrs.asdict(config)
    assert [field.name for field in dataclasses.fields(tw.RetryConfig)] == [*attrs.asdict(config)]
    assert hash(replaced) != hash(config)
    assert copy.copy(config) == pickle.loads(pickle.dumps(config)) == config
    with pytest.raises(ValueError, match="max_connections"):
        dataclasses.replace(config, max_connections=0)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"enable_stuck_detection": "no"}, "RetryConfig.enable_stuck_detection"),
        ({"retryable_exceptions": [TimeoutError]}, "RetryConfig.retryable_exceptions: expected a tuple"),
        ({"retryable_exceptions": (TimeoutError, "x")}, "RetryConfig.retryable_exceptions: expected exception classes"),
    ],
)
def test_wrong_official_retry_settings_are_rejected_by_name(settings: dict[str, Any], problem: str) -> None:
    """The error names the setting."""
    with pytest.raises(TypeError, match=problem):
        tw.RetryConfig(**settings)


def test_unsupported_arguments_of_a_service_are_ignored_with_a_warning() -> None:
    """The warning names arguments and alternative, and points at the caller; the client works."""
    with pytest.warns(FutureWarning, match=r"max_retries, timeout.*retry=RetryConfig") as caught:
        client = tw.ServiceClient(base_url="local", timeout=60, max_retries=3)
    assert [warning.filename for warning in caught] == [__file__]
    with client:
        assert client.get_server_capabilities().supported_models


def test_metadata_at_the_position_of_older_releases_is_rejected() -> None:
    """A misplaced argument raises an error with the alternative, and nothing is sent."""
    with tw.ServiceClient(base_url="local") as client, pytest.raises(TypeError, match="as user_metadata="):
        client.create_training_client_from_state("tinker://a/weights/b", {"a": "b"})  # type: ignore[arg-type]


def test_older_arguments_create_sampling_client() -> None:
    """The older name returns a future of a sampling client."""
    with tw.ServiceClient(base_url="local") as client:
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=2)
        sampling = training.save_weights_and_get_sampling_client_submit().result(60)
        params = tw.SamplingParams(max_tokens=1)
        assert sampling.sample(tw.ModelInput.from_ints([1]), num_samples=1, sampling_params=params).result(60).sequences


def test_error_categories_have_official_members() -> None:
    """The categories have members, also as a name of types."""
    assert tw.types.RequestErrorCategory is tw.RequestErrorCategory
    assert tw.types.RequestErrorCategory.User == "user"


def test_exports_list_each_existing_name_once() -> None:
    """``__all__`` lists existing names, each once."""
    assert len(tw.__all__) == len(set(tw.__all__))
    assert all(hasattr(tw, name) for name in tw.__all__)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in OLDER.items() for name in names])
def test_names_of_older_releases_stay_public(kind: type, name: str) -> None:
    """Users may call every operation that servers implement."""
    assert callable(getattr(kind, name))


@pytest.mark.parametrize("wire", ["0.6.3", "0.16.1"])
def test_older_names_work_where_servers_serve_them(wire: str) -> None:
    """A server of an older wire responds to each older name."""
    with embedded_http_server("--wire", wire) as url, tw.ServiceClient(base_url=url, wire_version=wire) as client:
        assert client.get_server_capabilities().supported_models
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=2)
        datums = [datum(3, 4)]
        assert asyncio.run(training.forward_async(datums, "cross_entropy")).result(60).loss_fn_outputs
        path = training.save_state("a").result(60).path
        training.load_state(path).result(60)
        asyncio.run(training.load_state_with_optimizer_async(path)).result(60)
        sampling = training.save_weights_and_get_sampling_client_submit().result(60)
        prompt, params = tw.ModelInput.from_ints([1]), tw.SamplingParams(max_tokens=1)
        assert asyncio.run(sampling.sample_async(prompt, 1, params)).sequences
        assert asyncio.run(sampling.compute_logprobs_async(tw.ModelInput.from_ints([1, 2])))[1]
        rest_client = client.create_rest_client()
        assert rest_client.get_checkpoint_archive_url_from_tinker_path(path).result(60).url
        assert rest_client.download_checkpoint_archive_from_tinker_path(path).result(60)
        training.unload_model().result(60)


@pytest.mark.parametrize(
    ("official", "actual", "expected"),
    [
        ([["a", "positional"]], [["a", "positional", 1]], []),
        ([["a", "positional", 1]], [["a", "positional", 2]], ["a defaults to [2], not [1]"]),
        ([["a", "positional"]], [["b", "positional", 0], ["a", "positional"]], ["a is missing or out of place"]),
        ([["a", "positional"]], [["a", "keyword"]], ["a is missing or out of place"]),
        ([], [["b", "keyword"]], ["b is required"]),
        ([["a", "keyword", None]], [["a", "keyword", None], ["b", "keyword", 0]], []),
    ],
)
def test_comparison_finds_differences(official: list[list[Any]], actual: list[list[Any]], expected: list[str]) -> None:
    """The comparison detects defaults, positions, kinds and additional required parameters."""
    assert list(find_unsupported(official, actual)) == expected
