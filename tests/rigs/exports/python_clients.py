"""Generators for Python: each client is imported whole, reads the captured bodies, and talks to the server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.rigs.exports.material import list_bodies
from tests.rigs.exports.step import Outcome, Workplace, run_program

FLOWS = Path(__file__).with_name("flows")
BINARY_TYPES = {"application/x-protobuf": "application/octet-stream", "application/gzip": "application/octet-stream"}
IMPORT_ALL = """
import importlib, pkgutil, generated
for module in pkgutil.walk_packages(generated.__path__, "generated."):
    importlib.import_module(module.name)
"""


def prove_python(tool: str, work: Workplace, outcome: Outcome) -> None:
    """Generate a client with one of GENERATORS, import it, read the captured bodies, and talk to the server."""
    folder = work.folder(tool)
    GENERATORS[tool](work, folder)
    outcome.generated = "yes"
    python = str(work.python)
    run_program([python, "-c", IMPORT_ALL], folder)
    outcome.compiled = "imported"
    bodies, _ = list_bodies(work.version)
    (folder / "bodies.json").write_text(json.dumps(bodies))
    shutil.copy(FLOWS / "flow.py", folder / "flow.py")
    shutil.copy(FLOWS / f"{tool.replace('-', '_')}.py", folder / "client.py")
    outcome.read = run_program([python, "client.py", "read"], folder).strip()
    outcome.talked = run_program([python, "client.py", "talk", work.server_url, work.version], folder).strip()


def _openapi_python_client(work: Workplace, folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"content_type_overrides": BINARY_TYPES, "post_hooks": []}))
    command = [str(work.python), "-m", "openapi_python_client", "generate", "--meta", "none", "--fail-on-warning"]
    run_program(
        [*command, "--path", "../openapi.json", "--config", "config.json", "--output-path", "generated"], folder
    )


def _datamodel_code_generator(work: Workplace, folder: Path) -> None:
    (folder / "generated").mkdir()
    (folder / "generated" / "__init__.py").touch()
    command = [str(work.python), "-m", "datamodel_code_generator", "--input", "../openapi.json"]
    command += ["--input-file-type", "openapi", "--output-model-type", "pydantic_v2.BaseModel"]
    run_program([*command, "--output", "generated/models.py"], folder)


GENERATORS: Mapping[str, Callable[[Workplace, Path], None]] = {
    "openapi-python-client": _openapi_python_client,
    "datamodel-code-generator": _datamodel_code_generator,
}
