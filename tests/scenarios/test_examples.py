"""Tests of the examples in docstrings: they run as they stand, offline."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator

import pytest

import tinkerwire as tw
from tinkerwire import training

CLASSES_WITH_EXAMPLES = frozenset(
    {
        "APIFuture",
        "RestClient",
        "SamplingClient",
        "ServiceClient",
        "TrainingClient",
        "ModelInput",
        "Datum",
        "TensorData",
        "SamplingParams",
        "AdamParams",
        "LogprobComparison",
        "LossTerm",
    }
)
"""Classes that users meet first; each has at least one example."""
PUBLIC_CLASSES = {
    **{name: value for name in tw.__all__ if inspect.isclass(value := getattr(tw, name))},
    **{name: value for name in training.__all__ if inspect.isclass(value := getattr(training, name))},
}


def find_docstring_examples(name: str) -> Iterator[doctest.DocTest]:
    """Yield the examples of a public class and its public methods."""
    cls = PUBLIC_CLASSES[name]
    members = {f"{name}.{member}": value for member, value in vars(cls).items() if not member.startswith("_")}
    for place, value in {name: cls, **members}.items():
        test = doctest.DocTestParser().get_doctest(inspect.getdoc(value) or "", {"tinker": tw}, place, None, None)
        if test.examples:
            yield test


@pytest.mark.parametrize("name", PUBLIC_CLASSES)
def test_examples_of_docstrings_run(name: str) -> None:
    """Every example prints what it shows; classes that users meet first have one."""
    tests = list(find_docstring_examples(name))
    assert tests or name not in CLASSES_WITH_EXAMPLES
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    reports: list[str] = []
    for test in tests:
        runner.run(test, out=reports.append)
    assert not reports, "".join(reports)
