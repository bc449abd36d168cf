"""Tests of the notebooks: a kernel runs all cells, and the files hold no outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(file.stem for file in FOLDER.glob("*.ipynb"))
WIDGET = "application/vnd.jupyter.widget-view+json"
KERNEL_TIMEOUT_S = 200


def read_notebook(name: str) -> Any:
    """Return a notebook."""
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def list_outputs(notebook: Any) -> list[Any]:
    """Return the outputs of all cells."""
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_all_notebooks_are_here() -> None:
    """The three notebooks exist."""
    assert NOTEBOOKS == ["first_steps", "many_samples", "reinforcement_learning"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_file_is_valid_and_has_no_outputs(name: str) -> None:
    """Outputs are not committed, so that a change of a notebook is a change of its cells."""
    notebook = read_notebook(name)
    nbformat.validate(notebook)
    assert not list_outputs(notebook)
    assert all(cell.get("execution_count") is None for cell in notebook.cells)
    assert FOLDER.joinpath(f"{name}.ipynb").read_text() == nbformat.writes(notebook) + "\n"


# The kernel warns of frozen modules, which a debugger could not step into.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::RuntimeWarning")
@pytest.mark.timeout(2 * KERNEL_TIMEOUT_S)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_cell_runs(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kernel of this environment runs the notebook offline, and shows tables and widgets where it should."""
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    notebook = read_notebook(name)
    # The kernel of the running Python, whatever kernels are installed.
    client = nbclient.NotebookClient(
        notebook, timeout=KERNEL_TIMEOUT_S, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    outputs = list_outputs(notebook)
    assert not [output for output in outputs if output.output_type == "error"]
    tables = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    widgets = [output for output in outputs if WIDGET in output.get("data", {})]
    if name == "first_steps":
        assert "<caption>supported_models (2)</caption>" in tables[0]
        assert any("weights/first" in table for table in tables)
        assert any("<caption>APIFuture</caption>" in table and "loss:sum" in table for table in tables)
    if name != "reinforcement_learning":
        assert "<caption>Usage</caption>" in tables[-1]
    if name == "many_samples":
        assert len(widgets) == 2
        states = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"].values()
        values = [row["state"] for row in states if row["model_name"] == "IntProgressModel"]
        assert sorted((state["value"], state["bar_style"]) for state in values) == [(50, "success"), (100, "success")]
