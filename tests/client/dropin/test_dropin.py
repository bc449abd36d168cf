"""Tests of ``import tinker`` under the drop-in, each in a new process, since modules stay imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tinkerwire
from tinkerwire import types
from tinkerwire.dropin import API_VERSION, PATHS
from tinkerwire.dropin.finder import SUBPROCESS_SITE

NAMES = (Path(__file__).parent / "names-0.38.0.txt").read_text().split()
IMPORTED_NAMES = (
    "tinker.lib.public_interfaces.api_future.AwaitableConcurrentFuture",
    "tinker.lib.public_interfaces.APIFuture",
    "tinker.lib.public_interfaces.rest_client.RestClient",
    "tinker.lib.retry_handler.RetryConfig",
    "tinker.lib.experimental.ExperimentalWarning",
    "tinker.types.tensor_data.TensorData",
    "tinker.types.image_chunk.ImageChunk",
    "tinker.types._pydantic_types.model_input.ModelInput",
    "tinker.types.optimizer.AdamParams",
    "tinker.types.topk_logprobs.TopkLogprobs",
    "tinker._exceptions.APIStatusError",
    "tinker._compat.model_dump",
    "tinker._version.__version__",
)
"""Names that users and the cookbook import from modules other than ``tinker`` and ``tinker.types``."""


def run_python(*arguments: str, code: int = 0, **environment: str) -> str:
    """Return the standard output of a new interpreter, with standard error after it if an exit code is expected."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    env = {**os.environ, "PYTHONPATH": path, **environment}
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, env=env)
    assert run.returncode == code, run.stderr
    return run.stdout + run.stderr if code else run.stdout


def run_script(script: str) -> Any:
    """Return the JSON value that a script prints under the drop-in."""
    return json.loads(run_python("-c", f"import json, tinkerwire.dropin\ntinkerwire.dropin.install()\n{script}"))


@pytest.mark.parametrize("module", [tinkerwire, types])
def test_every_official_public_name_exists(module: ModuleType) -> None:
    """No public name of the official SDK is missing or None."""
    prefix = module.__name__.replace("tinkerwire", "tinker") + "."
    public = [name.removeprefix(prefix) for name in NAMES if name.rpartition(".")[0] + "." == prefix]
    assert len(public) > 60
    assert not [name for name in public if getattr(module, name, None) is None]


def test_official_module_paths_import_tinkerwire() -> None:
    """Each module of the table can be imported, and names imported from them are defined in tinkerwire."""
    modules = run_script(
        f"import importlib\nfor path in {list(PATHS)!r}: importlib.import_module(path)\n"
        f"names = [name.rpartition('.') for name in {IMPORTED_NAMES!r}]\n"
        "values = [getattr(importlib.import_module(module), name) for module, _, name in names]\n"
        "print(json.dumps([getattr(value, '__module__', value) for value in values]))"
    )
    assert len(modules) == len(IMPORTED_NAMES)
    assert all(module.startswith("tinkerwire") for module in modules[:-1]), modules
    # The last name is the version, a text.
    assert modules[-1] == API_VERSION


def test_file_of_tinker_is_the_finder() -> None:
    """Both public modules have the path of the drop-in's finder as ``__file__``."""
    files = run_script("import tinker, tinker.types\nprint(json.dumps([tinker.__file__, tinker.types.__file__]))")
    assert files == [str(SUBPROCESS_SITE.parent / "finder.py")] * 2


def test_tinker_and_tinkerwire_have_the_same_classes() -> None:
    """Each class is the same object under both names, so that isinstance and pickles agree; the version is official."""
    values = run_script(
        "import tinker, tinker.types, tinkerwire, pickle\nfrom tinker import *\nfrom tinker.types import LossFnType\n"
        "print(json.dumps([tinker.Datum is tinkerwire.Datum, tinker.types.TensorData is TensorData,"
        " tinker.lib.public_interfaces.ServiceClient is ServiceClient,"
        " tinker.types.tensor_data.TensorData is TensorData,"
        " pickle.loads(pickle.dumps(tinker.AdamParams())) == AdamParams(), tinker.__version__, tinker.__title__]))"
    )
    assert values == [True] * 5 + [API_VERSION, "tinker"]


def test_missing_attribute_or_module_is_named() -> None:
    """The error names an attribute or a module that tinkerwire lacks, also after two calls of install()."""
    output = run_python(
        "-c", "import tinkerwire.dropin as d\nd.install()\nd.install()\nimport tinker\ntinker.nonsense", code=1
    )
    assert "AttributeError: tinkerwire has no tinker.nonsense (looked for in tinkerwire)" in output
    output = run_python("-c", "import tinkerwire.dropin as d\nd.install()\nimport tinker.types.no_such_type", code=1)
    assert "ModuleNotFoundError: No module named 'tinker.types.no_such_type'" in output


def test_install_raises_if_another_tinker_is_imported(tmp_path: Path) -> None:
    """Objects of the two packages are incompatible; a tinker that is only installed does not matter."""
    (tmp_path / "tinker.py").write_text("import sys\nWHO = 'official'\n")
    script = "import sys; sys.path.insert(0, {0!r})\n{1}\nimport tinkerwire.dropin as d\nd.install()\nimport tinker\n"
    output = run_python("-c", script.format(str(tmp_path), "import tinker"), code=1)
    assert (
        "RuntimeError: tinker was imported already, from" in output and "python -m tinkerwire.dropin SCRIPT" in output
    )
    assert run_python("-c", script.format(str(tmp_path), "") + "print(tinker.Datum.__module__)") == (
        "tinkerwire_generated.models.inputs\n"
    )


def test_scripts_and_modules_run_as_main(tmp_path: Path) -> None:
    """They get their arguments and import from their own folder; the exit code is theirs, or 2 for wrong usage."""
    (tmp_path / "neighbour.py").write_text("NAME = 'neighbour'\n")
    (tmp_path / "program.py").write_text(
        "import sys, tinker, neighbour\n"
        "print(__name__, tinker.__version__, neighbour.NAME, sys.argv[1:])\nsys.exit(len(sys.argv) - 1)\n"
    )
    expected = f"__main__ {API_VERSION} neighbour ['--a', '-m']\n"
    assert expected in run_python("-m", "tinkerwire.dropin", str(tmp_path / "program.py"), "--a", "-m", code=2)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    assert expected in run_python("-m", "tinkerwire.dropin", "-m", "program", "--a", "-m", code=2, PYTHONPATH=path)
    assert "usage: python -m tinkerwire.dropin SCRIPT" in run_python("-m", "tinkerwire.dropin", code=2)
    assert "no-such.py: script not found" in run_python("-m", "tinkerwire.dropin", "no-such.py", code=2)
    assert "nosuch: module not found" in run_python("-m", "tinkerwire.dropin", "-m", "nosuch", code=2)


def test_module_of_a_package_that_imports_tinker_runs(tmp_path: Path) -> None:
    """The imports of its packages find the drop-in; the error for a missing module is one line."""
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "outer" / "__init__.py").write_text("import tinker\n")
    (inner / "__init__.py").write_text("from tinker import types\n")
    (inner / "program.py").write_text("import tinker\nprint(__name__, tinker.__version__)\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    output = run_python("-m", "tinkerwire.dropin", "-m", "outer.inner.program", PYTHONPATH=path)
    assert output == f"__main__ {API_VERSION}\n"
    for name in ("outer.nosuch", "outer.inner.nosuch", "nosuch.program"):
        output = run_python("-m", "tinkerwire.dropin", "-m", name, code=2, PYTHONPATH=path)
        assert output == f"{name}: module not found\n"
    (inner / "__init__.py").write_text("import lacking\n")
    output = run_python("-m", "tinkerwire.dropin", "-m", "outer.inner.program", code=1, PYTHONPATH=path)
    assert "No module named 'lacking'" in output


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 does not support PYTHONSAFEPATH")
def test_safe_path_is_not_changed(tmp_path: Path) -> None:
    """With PYTHONSAFEPATH, a script has the same path as without the drop-in."""
    (tmp_path / "program.py").write_text("import sys\nprint(sys.path)\n")
    expected = run_python("-c", "import sys; print(sys.path)", PYTHONSAFEPATH="1")
    assert run_python("-m", "tinkerwire.dropin", str(tmp_path / "program.py"), PYTHONSAFEPATH="1") == expected


PARENT = """
import multiprocessing, subprocess, sys
def find_client_module(_=None):
    import tinker
    return tinker.ServiceClient.__module__
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(find_client_module, [0])[0])
    print(subprocess.run([sys.executable, "-c", "import tinker; print(tinker.ServiceClient.__module__)"],
          capture_output=True, text=True).stdout.strip())
"""


def test_child_processes_inherit_the_drop_in(tmp_path: Path) -> None:
    """Workers of multiprocessing and subprocesses import tinkerwire, and the user's sitecustomize runs as well."""
    (tmp_path / "parent.py").write_text(PARENT)
    (tmp_path / "tinker.py").write_text("class ServiceClient: pass\n")
    (tmp_path / "sitecustomize.py").write_text("import os\nopen(f'{__file__}.{os.getpid()}', 'w').close()\n")
    # The folder precedes Python's own folders, some of which have a sitecustomize.
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    for program in (["-m", "parent"], [str(tmp_path / "parent.py")]):
        lines = run_python("-m", "tinkerwire.dropin", *program, PYTHONPATH=path).splitlines()
        assert lines == ["tinkerwire._service"] * 2
    before = {*tmp_path.glob("sitecustomize.py.*")}
    run_python("-c", "import tinker", PYTHONPATH=os.pathsep.join([str(SUBPROCESS_SITE), path]))
    assert len({*tmp_path.glob("sitecustomize.py.*")} - before) == 1
    script = "import os, tinkerwire.dropin as d\n" + "d.install(children={0})\n" * 2 + "print(os.environ['PYTHONPATH'])"
    for children in (True, False):
        folders = run_python("-c", script.format(children), PYTHONPATH=path).splitlines()[-1].split(os.pathsep)
        assert len([folder for folder in folders if folder.endswith("subprocess_site")]) == children


def test_child_without_tinkerwire_imports_its_own_tinker(tmp_path: Path) -> None:
    """A Python process that inherits the drop-in's folder but cannot import tinkerwire is not affected."""
    (tmp_path / "tinker.py").write_text("WHO = 'official'\n")
    path = os.pathsep.join([str(SUBPROCESS_SITE), str(tmp_path)])
    run = subprocess.run(
        [sys.executable, "-S", "-c", "import sitecustomize, tinker; print(tinker.WHO)"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (run.stdout, run.stderr) == ("official\n", "")
