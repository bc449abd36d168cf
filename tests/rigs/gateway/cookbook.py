"""Recipes of the cookbook, as they are, with the official SDK 0.38.0 on servers that it does not fit.

    python -m tests.rigs.gateway.cookbook                     all; writes docs/gateway.md
    python -m tests.rigs.gateway.cookbook --servers skyrl     one server; the table keeps the other results

Each recipe runs directly at the server first, to show what stops it there. It then runs through a gateway. A recipe
that saves before its end is resumed from there through another process of the gateway. The results are kept in
build/gateway. Exit code 1 when a recipe does not train or resume through the gateway.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs
from tests.rigs.cookbook.catalogue import COMMON, LOSS, REWARD, Recipe, split_options
from tests.rigs.cookbook.materials import MODEL
from tests.rigs.cookbook.recipe_report import RecipeRun
from tests.rigs.cookbook.recipes import RecipeRunner
from tests.rigs.cookbook.run import VERSION, download_sources, ensure_cookbook_python
from tests.rigs.gateway.parties import BUILD, THIRD_PARTY, run_gateway, server_title
from tests.rigs.official.report import DOCS, write_section

TIMEOUT_S = 300.0
DIRECT_TIMEOUT_S = 300.0
MAX_DIFFERENCE = 1e-4
"""Relative difference of a step after a checkpoint in both runs: servers save float32, and sum in any order."""
MAX_LORA_RANK = 32
"""Rank of the recipes that have no option for it."""
RECIPES = (
    Recipe(
        module="recipes.sl_loop",
        options=split_options("batch_size=32 learning_rate=3e-3 lora_rank=8 max_steps=6 save_every=2"),
        number=LOSS,
        falls=True,
        resumes=True,
    ),
    Recipe(
        module="recipes.preference.shorter.train",
        options=split_options(f"{COMMON} group_size=4 batch_size=4 max_tokens=16 learning_rate=1e-3 max_steps=4"),
        number=REWARD,
    ),
    Recipe(
        module="recipes.distillation.on_policy_distillation",
        options=split_options(
            f"{COMMON} teacher_model={MODEL} dataset=deepmath groups_per_batch=4 group_size=2 max_tokens=16 "
            "lora_rank=8 learning_rate=3e-3 max_steps=4 save_every=2 eval_every=0"
        ),
        number="teacher_kl",
        resumes=True,
    ),
)


@attrs.frozen(kw_only=True)
class Result:
    """Runs of one recipe at one server.

    Args:
        server: name of the server.
        direct: the run without the gateway.
        through: the runs through the gateway.
    """

    server: str
    direct: RecipeRun
    through: RecipeRun

    def find_problems(self) -> list[str]:
        """Return why the recipe has not trained or resumed through the gateway."""
        run = self.through
        name = f"{server_title(self.server)}: {run.recipe.module}"
        if run.stop_reason:
            return [f"{name}: {run.stop_reason}"]
        numbers, resumed = run.numbers(run.rows), run.numbers(run.resumed_rows)
        problems = []
        if not numbers:
            problems.append(f"{name}: reported no {run.recipe.number}")
        elif run.recipe.falls and numbers[-1] >= numbers[0]:
            problems.append(f"{name}: {run.recipe.number} went from {numbers[0]} to {numbers[-1]}")
        if run.recipe.resumes and not 0 < len(resumed) < len(numbers):
            problems.append(f"{name}: resumed, it ran {len(resumed)} of {len(numbers)} steps")
        difference = self.resumed_difference()
        if difference is not None and difference > MAX_DIFFERENCE:
            problems.append(f"{name}: resumed, {run.recipe.number} differs by {difference:.1e}")
        return problems

    def resumed_difference(self) -> float | None:
        """Return the largest relative difference of a step that both runs did; None where steps draw samples."""
        if self.through.recipe.number != LOSS:
            return None
        first = {row["step"]: row[LOSS] for row in self.through.rows if LOSS in row}
        pairs = [(first[row["step"]], row[LOSS]) for row in self.through.resumed_rows if row["step"] in first]
        return max((abs(a - b) / abs(a) for a, b in pairs), default=math.inf)


def _file_of(server: str, recipe: Recipe) -> Path:
    return BUILD / f"cookbook-{server}-{recipe.module}.json"


def save(result: Result) -> None:
    """Keep a result for later reports."""
    runs = (result.direct, result.through)
    values = [attrs.asdict(run, filter=lambda attribute, _: attribute.name != "recipe") for run in runs]
    BUILD.mkdir(parents=True, exist_ok=True)
    _file_of(result.server, result.through.recipe).write_text(json.dumps(values))


def read_results() -> list[Result]:
    """Return all results that were kept."""
    pairs = [(server, recipe) for server in THIRD_PARTY for recipe in RECIPES if _file_of(server, recipe).exists()]
    results = []
    for server, recipe in pairs:
        direct, through = (
            RecipeRun(recipe=recipe, **value) for value in json.loads(_file_of(server, recipe).read_text())
        )
        results.append(Result(server=server, direct=direct, through=through))
    return results


def run_recipes(name: str, recipes: Sequence[Recipe], python: Path, cookbook: Path) -> list[Result]:
    """Run recipes at a server of their own, directly and through the gateway."""
    server = THIRD_PARTY[name]
    results = []
    with server.running(base_model=MODEL, max_lora_rank=MAX_LORA_RANK) as url:
        at_server = _make_runner(name, "direct", python, cookbook, url, DIRECT_TIMEOUT_S)
        at_gateway = _make_runner(name, "through", python, cookbook, "", TIMEOUT_S)
        for recipe in recipes:
            direct = at_server.run_recipe(recipe)
            with run_gateway(url) as gateway:
                at_gateway.set_url(gateway)
                through = at_gateway.run_once(recipe)
            if recipe.resumes and through.saved and not through.stop_reason:
                with run_gateway(url) as gateway:
                    at_gateway.set_url(gateway)
                    through = at_gateway.resume(through)
            results.append(Result(server=name, direct=direct, through=through))
            save(results[-1])
            for way, run in (("directly", direct), ("through the gateway", through)):
                sys.stdout.write(f"{name}: {recipe.module} {way}: {run.seconds:.0f} s {run.stop_reason}\n")
            sys.stdout.flush()
    return results


def _make_runner(name: str, way: str, python: Path, cookbook: Path, url: str, timeout_s: float) -> RecipeRunner:
    runner = RecipeRunner("tinker", python, cookbook, url, name=f"gateway-{name}-{way}", timeout_s=timeout_s)
    # The tokenizer of the server's model.
    shutil.rmtree(runner.folder / MODEL)
    (runner.folder / MODEL).symlink_to(THIRD_PARTY[name].model_folder)
    return runner


def render_table(results: Sequence[Result]) -> str:
    """Return the section of the report."""
    lines = [
        "## The cookbook",
        "",
        f"Made by `make gateway-cookbook`: recipes of tinker-cookbook {VERSION}, unmodified, with the official SDK "
        "0.38.0 on two servers that it does not fit. The servers offer a tiny Qwen3 under the name of the recipes' own "
        f"model, {MODEL}. Each recipe runs to its end through the gateway, which discovers what the server supports. "
        "It is then resumed from the last checkpoint before its last step, through another process of the gateway "
        "without a state file; preference.shorter saves at its end only.",
        "",
        "| Server | Recipe | Steps | Checkpoints | Number | First | Last | Resumed at | Last | Difference | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *(_render_line(result) for result in results if not result.through.stop_reason),
        "",
        "The difference is the largest relative one between the number of a step in both runs; steps that draw samples "
        f"have none. {len(results)} of {len(RECIPES) * len(THIRD_PARTY)} pairs of a recipe and a server were run.",
        "",
        "Without the gateway:",
        "",
        *(
            f"- {server_title(result.server)}, {result.direct.recipe.module}: {_describe_direct(result.direct)}"
            for result in results
        ),
    ]
    stopped = [result for result in results if result.through.stop_reason]
    if stopped:
        lines += ["", "Stopped through the gateway:", ""]
        lines += [
            f"- {server_title(result.server)}, {result.through.recipe.module}: `{result.through.stop_reason}`"
            for result in stopped
        ]
    return "\n".join(lines)


def _render_line(result: Result) -> str:
    run = result.through
    numbers, resumed = run.numbers(run.rows), run.numbers(run.resumed_rows)
    difference = result.resumed_difference()
    cells = [
        *(server_title(result.server), run.recipe.module, str(len(numbers)), str(run.saved), run.recipe.number),
        *([f"{numbers[0]:.4g}", f"{numbers[-1]:.4g}"] if numbers else ["", ""]),
        *([f"{run.resumed_rows[0]['step']}", f"{resumed[-1]:.4g}"] if resumed else ["", ""]),
        *("" if difference is None else f"{difference:.1g}", f"{run.seconds:.0f}"),
    ]
    return f"| {' | '.join(cells)} |"


def _describe_direct(run: RecipeRun) -> str:
    if not run.stop_reason:
        return "runs to its end and resumes"
    return f"stops after {len(run.numbers(run.rows))} steps: `{run.stop_reason}`"


def main() -> int:
    """Run, write the report, and return 1 if a recipe does not train or resume through the gateway."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", nargs="+", choices=list(THIRD_PARTY), default=list(THIRD_PARTY))
    parser.add_argument("--recipes", nargs="+", choices=[recipe.module for recipe in RECIPES])
    options = parser.parse_args()
    python = ensure_cookbook_python()
    cookbook = download_sources(python)
    recipes = [recipe for recipe in RECIPES if options.recipes is None or recipe.module in options.recipes]
    results = [result for name in options.servers for result in run_recipes(name, recipes, python, cookbook)]
    text = render_table(read_results())
    write_section(DOCS / "gateway.md", "cookbook", text, title="The gateway")
    problems = [problem for result in results for problem in result.find_problems()]
    sys.stdout.write("\n".join([text, "", *problems]) + "\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
