"""Recipes of the cookbook, as they are, against the embedded server: with the official SDK and on the drop-in.

python -m tests.rigs.cookbook.recipes
python -m tests.rigs.cookbook.recipes recipes.sl_loop recipes.rl_basic    # only these, and no report

Each client has its own server process with the same seed, so that both must report the same numbers.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from tests.rigs.cookbook.catalogue import RECIPES, Recipe
from tests.rigs.cookbook.materials import MODEL, write_materials
from tests.rigs.cookbook.recipe_report import RecipeRun, find_problems, render_table
from tests.rigs.cookbook.run import (
    SOURCE_FOLDERS,
    VERSION,
    WORK,
    create_environment,
    download_sources,
    ensure_cookbook_python,
)
from tests.rigs.official.report import DOCS, write_section
from tests.support.embedded import embedded_http_server

SERVER = ("--wire", "0.38.0", "--seed", "0", "--alias", f"{MODEL}=tinkerwire/byte-small")
TIMEOUT_S = 600
CLIENTS = {"tinker": (), "tinkerwire": ("-m", "tinkerwire.dropin")}
"""Arguments before ``-m RECIPE`` for each client."""


class RecipeRunner:
    """Folder with data, and a server, in which recipes run with one client.

    Args:
        client: the client, a key of :data:`CLIENTS`.
        python: Python of the environment with the cookbook's requirements.
        cookbook: folder of the cookbook's sources.
        url: URL of the server.
        name: name of the folder; that of the client by default.
        timeout_s: seconds after which a run is ended.
    """

    def __init__(
        self, client: str, python: Path, cookbook: Path, url: str, *, name: str = "", timeout_s: float = TIMEOUT_S
    ) -> None:
        self.folder = WORK / "recipes" / (name or client)
        shutil.rmtree(self.folder, ignore_errors=True)
        write_materials(self.folder)
        self._timeout_s = timeout_s
        self._command = [str(python), *CLIENTS[client], "-m"]
        path = (*SOURCE_FOLDERS, cookbook) if client == "tinkerwire" else (cookbook,)
        self._environment = create_environment(*path) | {
            "TINKER_BASE_URL": url,
            "TINKER_API_KEY": "tml-local",
            "TINKER_COOKBOOK_RUNS_DIR": str(self.folder / "runs"),
            "HF_HOME": str(self.folder / "hub"),
        }

    def set_url(self, url: str) -> None:
        """Use a server of another URL from now on."""
        self._environment["TINKER_BASE_URL"] = url

    def run_recipe(self, recipe: Recipe) -> RecipeRun:
        """Run a recipe to its end; resume it once from the last checkpoint before its last step."""
        run = self.run_once(recipe)
        return self.resume(run) if recipe.resumes and run.saved and not run.stop_reason else run

    def run_once(self, recipe: Recipe) -> RecipeRun:
        """Run a recipe to its end."""
        logs = self._find_logs(recipe)
        start = time.monotonic()
        stop_reason = self._run(recipe, logs)
        seconds = time.monotonic() - start
        rows = _read_lines(logs / "metrics.jsonl") if logs else []
        saved = len(_read_lines(logs / "checkpoints.jsonl")) if logs else 0
        return RecipeRun(recipe=recipe, rows=rows, saved=saved, seconds=seconds, stop_reason=stop_reason)

    def resume(self, run: RecipeRun) -> RecipeRun:
        """Run a recipe again as if it had been ended before its last step was saved; return both runs."""
        logs = self._find_logs(run.recipe)
        assert logs is not None
        checkpoints = _read_lines(logs / "checkpoints.jsonl")
        checkpoints = [checkpoint for checkpoint in checkpoints if _locate(checkpoint) != _locate(checkpoints[-1])]
        (logs / "checkpoints.jsonl").write_text("".join(json.dumps(checkpoint) + "\n" for checkpoint in checkpoints))
        (logs / "metrics.jsonl").rename(logs / "metrics-first.jsonl")
        stop_reason = self._run(run.recipe, logs)
        return attrs.evolve(run, resumed_rows=_read_lines(logs / "metrics.jsonl"), stop_reason=stop_reason)

    def _find_logs(self, recipe: Recipe) -> Path | None:
        if recipe.folder is None:
            return self.folder / "logs" / recipe.module
        return self.folder / "runs" / recipe.folder if recipe.folder else None

    def _run(self, recipe: Recipe, logs: Path | None) -> str:
        """Run the recipe; return the reason of a premature end, or an empty string."""
        options = list(recipe.options)
        if recipe.folder is None:
            options.append(f"log_path={logs}")
        if recipe.start:
            start = next(candidate for candidate in RECIPES if candidate.module == recipe.start)
            checkpoint = _read_lines((self._find_logs(start) or self.folder) / "checkpoints.jsonl")[-1]
            options.append(f"load_checkpoint_path={checkpoint['state_path']}")
        command = [*self._command, f"tinker_cookbook.{recipe.module}", *options]
        try:
            completed = subprocess.run(
                command,
                cwd=self.folder,
                env=self._environment,
                input=recipe.stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=self._timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not at its end after {self._timeout_s:.0f} s"
        (self.folder / f"{recipe.module}.log").write_text(completed.stdout)
        return _find_reason(completed.stdout, self.folder) if completed.returncode else ""


def _read_lines(path: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _locate(checkpoint: Mapping[str, Any]) -> tuple[Any, Any]:
    return checkpoint.get("epoch"), checkpoint.get("batch")


def _find_reason(printed: str, folder: Path) -> str:
    """Return the last error of a traceback without parts that differ between runs."""
    lines = [line for line in printed.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Arg|Exit)\b", line)]
    reason = (errors or lines or ["no word"])[-1]
    return re.sub(r"f-[0-9a-f]+-\d+", "f-…", reason.replace(str(folder), ".").replace(str(Path.home()), "~"))[:300]


def run_recipes(recipes: Sequence[Recipe], client: str, python: Path, cookbook: Path) -> list[RecipeRun]:
    """Run recipes with one client against a server of their own."""
    runs = []
    with embedded_http_server(*SERVER) as url:
        runner = RecipeRunner(client, python, cookbook, url)
        for recipe in recipes:
            runs.append(runner.run_recipe(recipe))
            sys.stdout.write(f"{client}: {recipe.module}: {runs[-1].seconds:.0f} s {runs[-1].stop_reason}\n")
            sys.stdout.flush()
    return runs


def main() -> int:
    """Run, write the report, and return 1 if tinkerwire falls behind the official SDK."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="RECIPE", help="run only these, and write no report")
    names = parser.parse_args().names
    recipes = [recipe for recipe in RECIPES if not names or recipe.module in names]
    python = ensure_cookbook_python()
    cookbook = download_sources(python)
    official, tinkerwire = (run_recipes(recipes, client, python, cookbook) for client in CLIENTS)
    text = render_table(official, tinkerwire, VERSION)
    if not names:
        write_section(DOCS / "cookbook.md", "recipes", text, title="The cookbook")
    problems = find_problems(official, tinkerwire)
    sys.stdout.write("\n".join([text, "", *problems]) + "\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
