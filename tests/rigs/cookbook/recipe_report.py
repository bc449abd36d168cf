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
        again: metrics of the second run, which resumed from a checkpoint.
        saved: checkpoints that the first run recorded.
        seconds: duration of the first run.
        stopped: reason of a premature end; empty otherwise.
    """

    recipe: Recipe
    rows: Sequence[Row]
    again: Sequence[Row] = ()
    saved: int = 0
    seconds: float
    stopped: str = ""

    def numbers(self, rows: Sequence[Row]) -> list[float]:
        """Return the recipe's metric of each row that has it."""
        return [row[self.recipe.number] for row in rows if self.recipe.number in row]


def count_differences(official: RecipeRun, ours: RecipeRun) -> tuple[int, int]:
    """Count the reported values other than times, and those that differ by more than 1e-6."""
    values, different = 0, 0
    for run in ("rows", "again"):
        one, other = getattr(official, run), getattr(ours, run)
        different += abs(len(one) - len(other))
        for left, right in zip(one, other, strict=False):
            keys = [key for key in left.keys() | right.keys() if "time" not in key]
            values += len(keys)
            different += sum(not _same(left.get(key), right.get(key)) for key in keys)
    return values, different


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=MILLIONTH, abs_tol=MILLIONTH)
    return bool(one == other)


def find_problems(official: Sequence[RecipeRun], ours: Sequence[RecipeRun]) -> list[str]:
    """Return the problems; none if tinkerwire matches the official SDK and recipes learn and resume."""
    wrong = []
    for theirs, own in zip(official, ours, strict=True):
        name = own.recipe.module
        if own.stopped and not theirs.stopped:
            wrong.append(f"{name}: stops with tinkerwire only: {own.stopped}")
        if count_differences(theirs, own)[1] and not own.recipe.races:
            wrong.append(f"{name}: {count_differences(theirs, own)[1]} values differ between the clients")
        if own.stopped:
            continue
        found = own.numbers(own.rows)
        if own.recipe.number and not found:
            wrong.append(f"{name}: reported no {own.recipe.number}")
        elif own.recipe.falls is not None and (found[-1] < found[0]) != own.recipe.falls:
            wrong.append(f"{name}: {own.recipe.number} went from {found[0]} to {found[-1]}")
        if own.recipe.resumes and not 0 < len(own.numbers(own.again)) < len(found):
            wrong.append(f"{name}: resumed, it ran {len(own.again)} of {len(found)} steps")
    return wrong


def render_table(official: Sequence[RecipeRun], ours: Sequence[RecipeRun], version: str) -> str:
    """Return the report."""
    pairs = list(zip(official, ours, strict=True))
    lines = [
        f"## Recipes of tinker-cookbook {version} on the embedded server",
        "",
        "By `make test-recipes`: each recipe unmodified, with options of its own, once with the official SDK 0.38.0 "
        "and once on the drop-in, each against a server of the same seed. Hubs are out of reach: the tokenizer and "
        "small data sets of the same form lie in folders of the wanted names, and the server offers "
        f"`tinkerwire/byte-small` under the name of the basic recipes' own model, {MODEL}.",
        "",
        "| recipe | client | steps | checkpoints | number | first | last | resumed at | last | s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for theirs, own in pairs:
        if not own.stopped:
            lines += [_line("official SDK", theirs), _line("tinkerwire", own)]
    lines += [
        "",
        "The second `last` is of a second run, from the last checkpoint before the last step. Recipes that submit "
        "steps ahead save with what is submitted, and do those steps twice. "
        "Where `number` is empty, the recipe reports none.",
        "",
        "Reported values, times left out, that differ between the clients by more than a millionth:",
        "",
    ]
    for theirs, own in pairs:
        values, different = count_differences(theirs, own)
        if values:
            why = ": its draws depend on which conversation is answered first" if own.recipe.races else ""
            lines.append(f"- {own.recipe.module}: {different} of {values}{why}")
    lines += ["", "## What stopped the others", "", "| recipe | official SDK | tinkerwire |", "|---|---|---|"]
    for theirs, own in pairs:
        if own.stopped:
            same = own.stopped if own.stopped != theirs.stopped else "the same"
            lines.append(f"| {own.recipe.module} | {_cell(theirs.stopped or 'runs to its end')} | {_cell(same)} |")
    return "\n".join(lines)


def _line(client: str, ended: RecipeRun) -> str:
    found, again = ended.numbers(ended.rows), ended.numbers(ended.again)
    resumed = [str(ended.again[0]["step"]), f"{again[-1]:.4g}"] if again else ["", ""]
    ends = [f"{found[0]:.4g}", f"{found[-1]:.4g}"] if found else ["", ""]
    cells = [ended.recipe.module, client, str(len(found) or ""), str(ended.saved or ""), ended.recipe.number]
    return f"| {' | '.join([*cells, *ends, *resumed, f'{ended.seconds:.0f}'])} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
