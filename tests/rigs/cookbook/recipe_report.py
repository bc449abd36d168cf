"""Comparison of recipes run with two clients, and its report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from tests.rigs.cookbook.catalogue import Recipe
from tests.rigs.cookbook.materials import MODEL

Row = Mapping[str, Any]
MILLIONTH = 1e-6
"""Sums of many numbers differ by less, when they are taken in another order."""


@attrs.frozen(kw_only=True)
class RecipeRun:
    """Run of one recipe.

    Args:
        rows: reported metrics, one mapping a step.
        resumed_rows: metrics of the second run, which resumed from a checkpoint.
        saved: checkpoints that the first run recorded.
        seconds: duration of the first run.
        stop_reason: reason of a premature end; empty otherwise.
    """

    recipe: Recipe
    rows: Sequence[Row]
    resumed_rows: Sequence[Row] = ()
    saved: int = 0
    seconds: float
    stop_reason: str = ""

    def numbers(self, rows: Sequence[Row]) -> list[float]:
        """Return the recipe's metric of each row that has it."""
        return [row[self.recipe.number] for row in rows if self.recipe.number in row]


def count_differences(official: RecipeRun, tinkerwire: RecipeRun) -> tuple[int, int]:
    """Count the reported values other than times, and those that differ by more than 1e-6."""
    values, different = 0, 0
    for run in ("rows", "resumed_rows"):
        official_rows, our_rows = getattr(official, run), getattr(tinkerwire, run)
        different += abs(len(official_rows) - len(our_rows))
        for official_row, our_row in zip(official_rows, our_rows, strict=False):
            keys = [key for key in official_row.keys() | our_row.keys() if "time" not in key]
            values += len(keys)
            different += sum(not _is_close(official_row.get(key), our_row.get(key)) for key in keys)
    return values, different


def _is_close(official: Any, own: Any) -> bool:
    if isinstance(official, float) and isinstance(own, float):
        return math.isclose(official, own, rel_tol=MILLIONTH, abs_tol=MILLIONTH)
    return bool(official == own)


def find_problems(official: Sequence[RecipeRun], tinkerwire: Sequence[RecipeRun]) -> list[str]:
    """Return the problems; none if tinkerwire matches the official SDK and recipes learn and resume."""
    problems = []
    for official_run, our_run in zip(official, tinkerwire, strict=True):
        name = our_run.recipe.module
        if our_run.stop_reason and not official_run.stop_reason:
            problems.append(f"{name}: stops with tinkerwire only: {our_run.stop_reason}")
        if count_differences(official_run, our_run)[1] and not our_run.recipe.races:
            problems.append(f"{name}: {count_differences(official_run, our_run)[1]} values differ between the clients")
        if our_run.stop_reason:
            continue
        numbers = our_run.numbers(our_run.rows)
        if our_run.recipe.number and not numbers:
            problems.append(f"{name}: reported no {our_run.recipe.number}")
        elif our_run.recipe.falls is not None and (numbers[-1] < numbers[0]) != our_run.recipe.falls:
            problems.append(f"{name}: {our_run.recipe.number} went from {numbers[0]} to {numbers[-1]}")
        if our_run.recipe.resumes and not 0 < len(our_run.numbers(our_run.resumed_rows)) < len(numbers):
            problems.append(f"{name}: resumed, it ran {len(our_run.resumed_rows)} of {len(numbers)} steps")
    return problems


def render_table(official: Sequence[RecipeRun], tinkerwire: Sequence[RecipeRun], version: str) -> str:
    """Return the report."""
    pairs = list(zip(official, tinkerwire, strict=True))
    lines = [
        f"## Recipes of tinker-cookbook {version} on the embedded server",
        "",
        "By `make test-recipes`: each recipe unmodified, with its own options, once with the official SDK 0.38.0 "
        "and once on the drop-in, each against a server of the same seed. Hubs are out of reach: the tokenizer and "
        "small data sets of the same form lie in folders with their names, and the server offers "
        f"`tinkerwire/byte-small` under the name of the basic recipes' own model, {MODEL}.",
        "",
        "| recipe | client | steps | checkpoints | number | first | last | resumed at | last | s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for official_run, our_run in pairs:
        if not our_run.stop_reason:
            lines += [_render_line("official SDK", official_run), _render_line("tinkerwire", our_run)]
    lines += [
        "",
        "The second `last` is of a second run, from the last checkpoint before the last step. Recipes that submit "
        "steps ahead save with what is submitted, and do those steps twice. "
        "Where `number` is empty, the recipe reports none.",
        "",
        "Reported values, times left out, that differ between the clients by more than a millionth:",
        "",
    ]
    for official_run, our_run in pairs:
        values, different = count_differences(official_run, our_run)
        if values:
            note = ": its draws depend on the order of responses" if our_run.recipe.races else ""
            lines.append(f"- {our_run.recipe.module}: {different} of {values}{note}")
    lines += ["", "## What stopped the others", "", "| recipe | official SDK | tinkerwire |", "|---|---|---|"]
    for official_run, our_run in pairs:
        if our_run.stop_reason:
            is_same = our_run.stop_reason == official_run.stop_reason
            reasons = (official_run.stop_reason or "runs to its end", "the same" if is_same else our_run.stop_reason)
            lines.append(f"| {our_run.recipe.module} | {' | '.join(map(_escape_cell, reasons))} |")
    return "\n".join(lines)


def _render_line(client: str, run: RecipeRun) -> str:
    numbers, resumed_numbers = run.numbers(run.rows), run.numbers(run.resumed_rows)
    resumed_cells = [str(run.resumed_rows[0]["step"]), f"{resumed_numbers[-1]:.4g}"] if resumed_numbers else ["", ""]
    number_cells = [f"{numbers[0]:.4g}", f"{numbers[-1]:.4g}"] if numbers else ["", ""]
    cells = [run.recipe.module, client, str(len(numbers) or ""), str(run.saved or ""), run.recipe.number]
    return f"| {' | '.join([*cells, *number_cells, *resumed_cells, f'{run.seconds:.0f}'])} |"


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|")
