"""Tests of what is public: the names that the public modules export, and no other module."""

from __future__ import annotations

import ast
import inspect
import pkgutil

import pytest

import tinkerwire
import tinkerwire_generated.models
from tinkerwire import dropin, types

EXPORTS = {
    "auth": {"get_tinker_token", "raise_if_tinker_not_accessible", "tinker_has_credentials"},
    "conformance": {
        "Level",
        "Outcome",
        "Requirement",
        "RunObserver",
        "RunReport",
        "Status",
        "load_requirements",
        "run_conformance",
        "run_conformance_async",
    },
    "dropin": {"API_VERSION", "PATHS", "install"},
    "experimental": {"ExperimentalWarning"},
    "gateway": {"Gateway"},
    "local": {
        "ByteTokenizer",
        "ConnectionDropped",
        "EmbeddedServer",
        "EmbeddedTransport",
        "FaultInjection",
        "Quirks",
        "RetentionPolicy",
        "embedded_transport",
        "shared_server",
    },
    "testing": {"FaultInjection", "LocalServer"},
    "training": {
        "LogprobComparison",
        "LossTerm",
        "compare_logprobs",
        "consistency",
        "elastic_net_penalty",
        "entropy",
        "gradient_penalty",
        "kl_penalty",
        "l1_penalty",
        "l2_penalty",
    },
    "version": {"DEFAULT_WIRE", "__version__"},
}
"""Names that each public module exports, without tinkerwire and tinkerwire.types."""
TINKERWIRE = frozenset(
    {
        "APIConnectionError",
        "APIError",
        "APIFuture",
        "APIResponseValidationError",
        "APIStatusError",
        "APITimeoutError",
        "AdamOptimizerConfig",
        "AdamParams",
        "AdminClient",
        "AuthenticationError",
        "BackcompatSamplingClientFuture",
        "BackcompatTrainingClientFuture",
        "BadRequestError",
        "BillingError",
        "CancelledSubmissionError",
        "Checkpoint",
        "CheckpointType",
        "ChunkLimits",
        "ClientClosedError",
        "ConflictError",
        "ContextLengthError",
        "Datum",
        "DialectError",
        "DimuonOptimizerConfig",
        "DimuonParams",
        "DmelChunk",
        "EncodedTextChunk",
        "ExperimentalWarning",
        "ForwardBackwardOutput",
        "FutureExpiredError",
        "FutureState",
        "InternalServerError",
        "LoraConfig",
        "LossHandle",
        "Metrics",
        "MetricsSnapshot",
        "ModelID",
        "ModelInput",
        "ModelInputChunk",
        "NotFoundError",
        "OptimParams",
        "OptimStepRequest",
        "OptimStepResponse",
        "ParsedCheckpointTinkerPath",
        "PerDatumLossFn",
        "PermissionDeniedError",
        "PrecedingOperationError",
        "PrecisionWarning",
        "Progress",
        "PromptProvenanceSpan",
        "RateLimitError",
        "Recovery",
        "RecoveryReport",
        "ReplayError",
        "RequestErrorCategory",
        "RequestFailedError",
        "RequestOptions",
        "RequestTimeoutError",
        "ResponseTooLargeError",
        "RestClient",
        "RetryConfig",
        "SampleRequest",
        "SampleResponse",
        "SampledProvenanceSpan",
        "SampledSequence",
        "SamplingClient",
        "SamplingLoad",
        "SamplingParams",
        "SequenceConflictError",
        "ServiceClient",
        "SessionExpiredError",
        "StopReason",
        "TensorData",
        "TensorDtype",
        "Timeout",
        "TinkerError",
        "TrainingClient",
        "TrainingRun",
        "UnprocessableEntityError",
        "Usage",
        "WaitStatus",
        "__title__",
        "__version__",
        "as_completed",
        "auth",
        "gather",
        "training",
        "types",
    }
)
"""Names that tinkerwire exports."""
PUBLIC_MODULES = {"__main__", *EXPORTS, "types"}
DROPIN_MODULES = {"compat", "deprecations", "finder", "paths", "proto", "stubs"}
"""Modules of tinkerwire.dropin; they replace modules of the official SDK, under the paths of the SDK."""


def list_exported_names(name: str) -> set[str]:
    """Return the names that a module exports: ``__all__``, ``import X as X``, and what it defines."""
    module = pkgutil.resolve_name(f"tinkerwire.{name}")
    if hasattr(module, "__all__"):
        return set(module.__all__)
    names: set[str] = set()
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname is not None}
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


@pytest.mark.parametrize("name", EXPORTS)
def test_public_module_exports_exactly_its_names(name: str) -> None:
    """A name becomes public only on purpose."""
    assert list_exported_names(name) == EXPORTS[name]


def test_tinkerwire_exports_exactly_its_names() -> None:
    """A name becomes public only on purpose."""
    assert set(tinkerwire.__all__) == TINKERWIRE


def test_types_are_the_models_of_the_contract() -> None:
    """``tinkerwire.types`` has every generated model and TopkLogprobs, and nothing else of the overlay."""
    models = set(tinkerwire_generated.models.__all__)
    assert set(types.__all__) == models | {"TopkLogprobs"}
    assert all(hasattr(types, name) for name in types.__all__)
    names: dict[str, object] = {}
    exec("from tinkerwire.types import *", names)
    assert names.keys() - {"__builtins__"} == set(types.__all__) <= set(dir(types))


def test_all_other_modules_are_private() -> None:
    """A module is public only if it is listed here; the names of all others start with an underscore."""
    modules = {module.name for module in pkgutil.iter_modules(tinkerwire.__path__)}
    assert {name for name in modules if not name.startswith("_")} | {"__main__"} == PUBLIC_MODULES
    inner = {module.name for module in pkgutil.iter_modules(dropin.__path__)}
    assert inner - {"__main__"} == DROPIN_MODULES
