"""``import tinker`` gives tinkerwire, in a process of its own each time: what is imported stays imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tinkerwire
from tinkerwire import types
from tinkerwire.dropin import API_VERSION, PATHS
from tinkerwire.dropin.finder import SUBPROCESS_SITE

NAMES = (Path(__file__).parent / "names-0.38.0.txt").read_text().split()
IMPORTED = (
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
"""What users and the cookbook import from modules below the two public ones."""


def python(*arguments: str, code: int = 0, **environment: str) -> str:
    """What a fresh interpreter prints; errors too when it is to end with a code."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    env = {**os.environ, "PYTHONPATH": path, **environment}
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, env=env)
    assert run.returncode == code, run.stderr
    return run.stdout + run.stderr if code else run.stdout


def tells(script: str) -> Any:
    """The JSON that a script prints after the drop-in is in place."""
    return json.loads(python("-c", f"import json, tinkerwire.dropin\ntinkerwire.dropin.install()\n{script}"))


@pytest.mark.parametrize("module", [tinkerwire, types])
def test_all_names_of_the_sdk_are_there(module: Any) -> None:
    """Each public name stands for something."""
    prefix = module.__name__.replace("tinkerwire", "tinker") + "."
    public = [name.removeprefix(prefix) for name in NAMES if name.rpartition(".")[0] + "." == prefix]
    assert len(public) > 60
    assert not [name for name in public if getattr(module, name, None) is None]


def test_module_paths_lead_here() -> None:
    """Each module of the table can be imported, and what is imported from them is ours."""
    found = tells(
        f"import importlib\nfor path in {list(PATHS)!r}: importlib.import_module(path)\n"
        f"names = [each.rpartition('.') for each in {IMPORTED!r}]\n"
        "found = [getattr(importlib.import_module(m), n) for m, _, n in names]\n"
        "print(json.dumps([getattr(each, '__module__', each) for each in found]))"
    )
    assert len(found) == len(IMPORTED)
    assert all(each.startswith("tinkerwire") for each in found[:-1]), found
    assert found[-1] == API_VERSION


def test_where_it_came_from() -> None:
    """Who asks for the file or the version is told."""
    found = tells("import tinker, tinker.types\nprint(json.dumps([tinker.__file__, tinker.types.__file__]))")
    assert found == [str(SUBPROCESS_SITE.parent / "finder.py")] * 2


def test_classes_are_the_same_by_either_name() -> None:
    """What comes from tinker and from tinkerwire is one class, so that isinstance and pickles agree."""
    found = tells(
        "import tinker, tinker.types, tinkerwire, pickle\nfrom tinker import *\nfrom tinker.types import LossFnType\n"
        "print(json.dumps([tinker.Datum is tinkerwire.Datum, tinker.types.TensorData is TensorData,"
        " tinker.lib.public_interfaces.ServiceClient is ServiceClient,"
        " tinker.types.tensor_data.TensorData is TensorData,"
        " pickle.loads(pickle.dumps(tinker.AdamParams())) == AdamParams(), tinker.__version__, tinker.__title__]))"
    )
    assert found == [True] * 5 + [API_VERSION, "tinker"]


def test_what_is_not_there_is_named() -> None:
    """An attribute and a module that tinkerwire lacks; install() twice changes nothing."""
    out = python(
        "-c", "import tinkerwire.dropin as d\nd.install()\nd.install()\nimport tinker\ntinker.nonsense", code=1
    )
    assert "AttributeError: tinkerwire has no tinker.nonsense (looked for in tinkerwire)" in out
    out = python("-c", "import tinkerwire.dropin as d\nd.install()\nimport tinker.types.no_such_type", code=1)
    assert "ModuleNotFoundError: No module named 'tinker.types.no_such_type'" in out


def test_a_tinker_that_was_there_first_is_refused(tmp_path: Path) -> None:
    """Objects of two packages would not fit each other; one that is only installed is passed over."""
    (tmp_path / "tinker.py").write_text("import sys\nWHO = 'official'\n")
    script = "import sys; sys.path.insert(0, {0!r})\n{1}\nimport tinkerwire.dropin as d\nd.install()\nimport tinker\n"
    out = python("-c", script.format(str(tmp_path), "import tinker"), code=1)
    assert "RuntimeError: tinker was imported already, from" in out and "python -m tinkerwire.dropin SCRIPT" in out
    assert python("-c", script.format(str(tmp_path), "") + "print(tinker.Datum.__module__)") == (
        "tinkerwire_generated.models\n"
    )


def test_scripts_and_modules_run(tmp_path: Path) -> None:
    """With their arguments, their own folder to import from, and as __main__; their exit code is ours."""
    (tmp_path / "neighbour.py").write_text("WORD = 'neighbour'\n")
    (tmp_path / "program.py").write_text(
        "import sys, tinker, neighbour\n"
        "print(__name__, tinker.__version__, neighbour.WORD, sys.argv[1:])\nsys.exit(len(sys.argv) - 1)\n"
    )
    expected = f"__main__ {API_VERSION} neighbour ['--a', '-m']\n"
    assert expected in python("-m", "tinkerwire.dropin", str(tmp_path / "program.py"), "--a", "-m", code=2)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    assert expected in python("-m", "tinkerwire.dropin", "-m", "program", "--a", "-m", code=2, PYTHONPATH=path)
    assert "usage: python -m tinkerwire.dropin SCRIPT" in python("-m", "tinkerwire.dropin", code=2)
    assert "no-such.py: script not found" in python("-m", "tinkerwire.dropin", "no-such.py", code=2)
    assert "nosuch: module not found" in python("-m", "tinkerwire.dropin", "-m", "nosuch", code=2)


def test_modules_of_packages_that_import_tinker_run(tmp_path: Path) -> None:
    """The packages are imported to find the module, and find tinker; what is not there is said in one line."""
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "outer" / "__init__.py").write_text("import tinker\n")
    (inner / "__init__.py").write_text("from tinker import types\n")
    (inner / "program.py").write_text("import tinker\nprint(__name__, tinker.__version__)\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    told = python("-m", "tinkerwire.dropin", "-m", "outer.inner.program", PYTHONPATH=path)
    assert told == f"__main__ {API_VERSION}\n"
    for name in ("outer.nosuch", "outer.inner.nosuch", "nosuch.program"):
        told = python("-m", "tinkerwire.dropin", "-m", name, code=2, PYTHONPATH=path)
        assert told == f"{name}: module not found\n"
    (inner / "__init__.py").write_text("import lacking\n")
    told = python("-m", "tinkerwire.dropin", "-m", "outer.inner.program", code=1, PYTHONPATH=path)
    assert "No module named 'lacking'" in told


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there is no PYTHONSAFEPATH")
def test_scripts_run_with_a_safe_path(tmp_path: Path) -> None:
    """Told to put no folder on the path, it takes none off it either."""
    (tmp_path / "program.py").write_text("import sys\nprint(sys.path)\n")
    plain = python("-c", "import sys; print(sys.path)", PYTHONSAFEPATH="1")
    assert python("-m", "tinkerwire.dropin", str(tmp_path / "program.py"), PYTHONSAFEPATH="1") == plain


PARENT = """
import multiprocessing, subprocess, sys
def which(_=None):
    import tinker
    return tinker.ServiceClient.__module__
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(which, [0])[0])
    print(subprocess.run([sys.executable, "-c", "import tinker; print(tinker.ServiceClient.__module__)"],
          capture_output=True, text=True).stdout.strip())
"""


def test_processes_inherit_it(tmp_path: Path) -> None:
    """Workers of multiprocessing and other Pythons, of scripts and modules; a site of one's own runs, too."""
    (tmp_path / "parent.py").write_text(PARENT)
    (tmp_path / "tinker.py").write_text("class ServiceClient: pass\n")
    (tmp_path / "sitecustomize.py").write_text("import os\nopen(f'{__file__}.{os.getpid()}', 'w').close()\n")
    # First: some systems have a site of their own among Python's folders.
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    for program in (["-m", "parent"], [str(tmp_path / "parent.py")]):
        lines = python("-m", "tinkerwire.dropin", *program, PYTHONPATH=path).splitlines()
        assert lines == ["tinkerwire._service"] * 2
    before = {*tmp_path.glob("sitecustomize.py.*")}
    python("-c", "import tinker", PYTHONPATH=os.pathsep.join([str(SUBPROCESS_SITE), path]))
    assert len({*tmp_path.glob("sitecustomize.py.*")} - before) == 1
    script = "import os, tinkerwire.dropin as d\n" + "d.install(children={0})\n" * 2 + "print(os.environ['PYTHONPATH'])"
    for children in (True, False):
        told = python("-c", script.format(children), PYTHONPATH=path).splitlines()[-1].split(os.pathsep)
        assert len([each for each in told if each.endswith("subprocess_site")]) == children


def test_a_python_without_tinkerwire_is_left_alone(tmp_path: Path) -> None:
    """What inherits the folder and cannot import tinkerwire imports its own tinker."""
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
