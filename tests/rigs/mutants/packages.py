"""Packages whose decisions the mutants change, each with the tests that must notice."""

from __future__ import annotations

import attrs


@attrs.frozen
class Package:
    """Modules that decide together, and their own tests."""

    name: str
    sources: tuple[str, ...]
    """Files or folders below `overlay/`."""
    tests: tuple[str, ...]
    """Files or folders below `tests/`."""
    deselected: tuple[str, ...] = ()
    """Tests that fail on unchanged code under mutmut, whose frames are on the stack."""


PACKAGES = (
    Package("polling", ("tinkerwire/_polling",), ("client/polling",)),
    Package(
        "retry",
        ("tinkerwire/_connection/retry.py", "tinkerwire/_connection/retry_rules.py"),
        ("client/connection",),
    ),
    Package(
        "chunking",
        (
            "tinkerwire/_training/chunking.py",
            "tinkerwire/_training/request_size.py",
            "tinkerwire/_training/result_merging.py",
        ),
        (
            "client/training/test_chunking.py",
            "client/training/test_output_checks.py",
            "client/training/test_request_size.py",
            "client/training/test_result_merging.py",
        ),
    ),
    Package(
        "dialect",
        ("tinkerwire/_connection/dialect_resolver.py", "tinkerwire_base/conversion/version_rules.py"),
        ("client/connection/test_dialect_resolver.py", "client/wire/test_dialect.py", "base/conversion"),
    ),
    Package(
        "tensors",
        ("tinkerwire_base/tensors.py", "tinkerwire_base/packed_list.py"),
        (
            "base/test_tensors.py",
            "base/test_packed_tensors.py",
            "base/test_packed_tokens.py",
            "base/test_number_lists.py",
            "base/test_token_ids.py",
            "base/test_torch_tensors.py",
            "base/mixins",
            "base/test_torch.py",
        ),
        ("base/test_tensors.py::test_rounding_warns_once_per_name_at_the_callers_line",),
    ),
    Package(
        "sequencing",
        (
            "tinkerwire/_sampling/sample_seq_ids.py",
            "tinkerwire/_training/operation_queue.py",
            "tinkerwire/_training/sequence_conflict.py",
        ),
        (
            "client/sampling/test_sample_seq_ids.py",
            "client/training/test_operation_queue.py",
            "client/training/test_operation_order.py",
            "client/training/test_sequence_conflict.py",
        ),
    ),
    Package("credentials", ("tinkerwire/_credentials",), ("client/credentials", "client/test_auth.py")),
)
