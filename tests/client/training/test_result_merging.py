"""Tests of merged metrics of chunks, against independent formulas."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinkerwire as tw
from tinkerwire._training.result_merging import merge_metrics, merge_results

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
PARTS = st.lists(st.tuples(NUMBERS, st.integers(0, 50)), min_size=2, max_size=8)
JSON_VALUES = st.one_of(
    NUMBERS, st.integers(-(2**63), 2**63), st.none(), st.text(max_size=3), st.booleans(), st.just([])
)
NAMES = st.sampled_from(
    [*(f"a:{r}" for r in ("mean", "sum", "min", "max", "slack", "unique", "hash_unordered")), "a:odd", "b", ":", ""]
)


def combine(name: str, parts: list[tuple[float, int]]) -> dict[str, float]:
    return merge_metrics([{name: value} for value, _ in parts], [weight for _, weight in parts])


def compute_mean(parts: list[tuple[float, int]]) -> float:
    """Return the mean over all datums, or over the chunks if no chunk has any."""
    spread = [value for value, weight in parts for _ in range(weight)] or [value for value, _ in parts]
    return math.fsum(spread) / len(spread)


@given(PARTS)
def test_mean_is_weighted_by_datums(parts: list[tuple[float, int]]) -> None:
    """``mean`` is the mean over all datums; if no chunk has any, over the chunks."""
    assert combine("m:mean", parts)["m:mean"] == pytest.approx(compute_mean(parts), abs=1e-6)


def test_chunk_without_datums_has_no_weight() -> None:
    """The mean of an empty chunk, even infinity, does not change the result."""
    assert combine("m:mean", [(math.inf, 0), (2.0, 1), (4.0, 1)]) == {"m:mean": 3.0}


@given(PARTS)
def test_sum_min_and_max_ignore_the_sizes_of_chunks(parts: list[tuple[float, int]]) -> None:
    """``sum``, ``min`` and ``max`` do not depend on the sizes of chunks."""
    values = [value for value, _ in parts]
    assert combine("m:sum", parts)["m:sum"] == pytest.approx(math.fsum(values), abs=1e-6)
    assert combine("m:min", parts) == {"m:min": min(values)}
    assert combine("m:max", parts) == {"m:max": max(values)}


@given(PARTS)
def test_slack_is_how_far_the_largest_is_above_the_mean(parts: list[tuple[float, int]]) -> None:
    """``slack`` is the largest value less the weighted mean."""
    expected = max(value for value, _ in parts) - compute_mean(parts)
    assert combine("m:slack", parts)["m:slack"] == pytest.approx(expected, abs=1e-6)


@given(PARTS)
def test_unique_keeps_every_value(parts: list[tuple[float, int]]) -> None:
    """``unique`` keeps all values: the first under its name, others under ``_1``, ``_2`` and so on."""
    merged = combine("m:unique", parts)
    assert list(merged.values()) == [value for value, _ in parts]
    assert list(merged) == ["m:unique", *(f"m:unique_{i}" for i in range(1, len(parts)))]


@given(PARTS, st.randoms(use_true_random=False))
def test_hash_unordered_ignores_the_order(parts: list[tuple[float, int]], random: Any) -> None:
    """``hash_unordered`` is the same for every order of the chunks, and finite."""
    shuffled = random.sample(parts, len(parts))
    assert combine("m:hash_unordered", parts) == combine("m:hash_unordered", shuffled)
    assert math.isfinite(combine("m:hash_unordered", parts)["m:hash_unordered"])


def test_hash_unordered_depends_on_the_values_only() -> None:
    """Other values have another hash; the same values have the same hash in another process."""
    parts = [(1.0, 1), (2.0, 1)]
    own_hash = combine("m:hash_unordered", parts)["m:hash_unordered"]
    assert own_hash != combine("m:hash_unordered", [(1.0, 1), (3.0, 1)])["m:hash_unordered"]
    code = (
        "from tinkerwire._training.result_merging import merge_metrics as c;"
        "print(c([{'m:hash_unordered': 1.0}, {'m:hash_unordered': 2.0}], [1, 1])['m:hash_unordered'])"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert int(run.stdout) == own_hash


@pytest.mark.parametrize("name", ["m", "m:odd", "a:b:odd", ":", ""])
def test_unknown_reduction_averages_different_values(name: str) -> None:
    """Equal values are kept, different ones averaged; the metric is not dropped."""
    assert combine(name, [(3.0, 1), (3.0, 9)]) == {name: 3.0}
    assert combine(name, [(0.0, 1), (4.0, 3)]) == {name: 3.0}


def test_last_part_of_a_name_is_the_reduction() -> None:
    """A name with several colons is merged by its last part."""
    assert combine("loss:per:token:sum", [(1.0, 1), (2.0, 1)]) == {"loss:per:token:sum": 3.0}


@given(st.lists(st.dictionaries(NAMES, JSON_VALUES, max_size=6), max_size=5), st.data())
def test_merging_never_raises(metrics: list[dict[str, Any]], data: st.DataObject) -> None:
    """Missing keys, nulls, text, unusual names, empty chunks and missing weights do not raise."""
    weights = [data.draw(st.integers(0, 5)) for _ in metrics]
    merged = merge_metrics(metrics, weights)
    assert all(isinstance(value, int | float) for value in merged.values())
    numbers = {name for chunk in metrics for name, value in chunk.items() if isinstance(value, int | float)}
    assert numbers <= set(merged)


@given(st.dictionaries(NAMES, NUMBERS), st.integers(0, 5))
def test_one_chunk_keeps_its_metrics(metrics: dict[str, float], datums: int) -> None:
    """The metrics of a batch in one chunk do not change."""
    assert merge_metrics([metrics], [datums]) == metrics


def test_metric_of_some_chunks_is_merged_over_these_chunks() -> None:
    """A key that a chunk lacks, also the first one, is merged over the others."""
    merged = merge_metrics([{"a:sum": 1.0}, {"b:mean": 2.0}, {"a:sum": 4.0, "b:mean": 5.0}], [1, 2, 1])
    assert merged == {"a:sum": 5.0, "b:mean": 3.0}


def test_outputs_keep_the_order_of_chunks() -> None:
    """An empty chunk adds no output and does not hide the output type."""
    tensors = [{"x": tw.TensorData(data=[float(i)], dtype="float32", shape=[1])} for i in range(3)]
    empty = tw.ForwardBackwardOutput(loss_fn_output_type="", loss_fn_outputs=[], metrics={"m:mean": 9.0})
    parts = [
        tw.ForwardBackwardOutput(loss_fn_output_type="T", loss_fn_outputs=tensors[:2], metrics={"m:mean": 1.0}),
        tw.ForwardBackwardOutput(loss_fn_output_type="T", loss_fn_outputs=tensors[2:], metrics={"m:mean": 4.0}),
    ]
    merged = merge_results([empty, *parts])
    assert merged.loss_fn_output_type == "T"
    assert merged.loss_fn_outputs == tensors
    assert merged.metrics == {"m:mean": 2.0}
    assert merge_results([]) == tw.ForwardBackwardOutput(loss_fn_output_type="", loss_fn_outputs=[], metrics={})
    assert merge_results([empty]).metrics == {"m:mean": 9.0}
