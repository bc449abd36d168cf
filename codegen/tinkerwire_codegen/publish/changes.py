"""Changes between any two wire versions, as one table of changes and the rows of each pair of versions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ..compare.command import compare_inputs
from ..compare.inputs import ContractInput, open_contract
from ..compare.report import render_report

Json = dict[str, Any]
Reports = dict[str, list[Json]]


def compare_with_later(folder: Path, old: str, versions: list[str]) -> Reports:
    """Compare one version of the contract in ``folder`` with all later ones: changes by version."""
    reports = {}
    for new in versions[versions.index(old) + 1 :]:
        changes = compare_inputs(_open(folder, old), _open(folder, new))
        reports[new] = json.loads(render_report(changes, old, new, "json"))["changes"]
    return reports


@cache
def _open(folder: Path, version: str) -> ContractInput:
    """Open a version, which is prepared once for all comparisons of a process."""
    return open_contract(f"@{version}", folder)


def build_table(reports: Iterable[tuple[str, Reports]]) -> Json:
    """Build a table without repetition: ``pairs[old][new]`` has the rows of ``changes``.

    The operations of a change are rows of ``operations``.
    """
    changes, operations = _Rows(), _Rows()
    pairs: dict[str, dict[str, list[int]]] = {}
    for old, by_version in reports:
        for new, found in by_version.items():
            rows = [
                changes.add(change | {"operations": list(map(operations.add, change["operations"]))})
                for change in found
            ]
            pairs.setdefault(old, {})[new] = rows
    return {"changes": changes.values, "operations": operations.values, "pairs": pairs}


class _Rows:
    """Distinct values, each of which has a row."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._rows: dict[str, int] = {}

    def add(self, value: Any) -> int:
        """Return the row of a value."""
        key = json.dumps(value, sort_keys=True)
        if key not in self._rows:
            self._rows[key] = len(self.values)
            self.values.append(value)
        return self._rows[key]
