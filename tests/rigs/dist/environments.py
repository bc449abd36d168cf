"""Empty environments in which a wheel is installed and tried."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.rigs.official.venv import ROOT

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
UV = Path(sys.executable).with_name("uv")
SECONDS = 600
README_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)

SERVER_PROGRAM = """
import subprocess, sys, urllib.request
from pathlib import Path
command = [Path(sys.executable).with_name("tinkerwire"), "serve", "--port", "0", "--folder", sys.argv[1]]
process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
try:
    for line in process.stdout:
        if "http://" in line:
            break
    url = "http" + line.split("http")[1].split()[0].rstrip(".,")
    import tinkerwire
    with tinkerwire.ServiceClient(base_url=url, api_key="tml-try") as service:
        print(service.get_server_capabilities().supported_models[0].model_name)
finally:
    process.terminate()
    process.wait(30)
"""
"""A client of `tinkerwire serve`: prints the name of a model."""

LICENSES_PROGRAM = """
import json
from importlib import metadata
rows = {}
for item in metadata.distributions():
    about = item.metadata
    classes = [name.split(" :: ")[-1] for name in about.get_all("Classifier") or () if name.startswith("License ::")]
    text = about.get("License-Expression") or ", ".join(classes) or (about.get("License") or "").split("\\n")[0]
    rows[about["Name"]] = text
print(json.dumps(rows))
"""


class TrialError(Exception):
    """A command in an environment that failed, with the end of its output."""


@dataclass
class Environment:
    """A virtual environment that holds nothing but the wheel and what it requires."""

    python: Path

    def install(self, wheel: Path, extra: str = "", *options: str) -> None:
        """Install the wheel with an extra."""
        requirement = f"tinkerwire[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
        run([UV, "pip", "install", "--quiet", "--python", self.python, *options, requirement])

    def run(self, *arguments: object) -> str:
        """Run Python in the environment, away from the repository, and return what it prints."""
        return run([self.python, "-I", *arguments], cwd=self.python.parents[2])

    def list_licenses(self) -> dict[str, str]:
        """Return the licence of each distribution by its name, "" where the metadata has none."""
        licenses: dict[str, str] = json.loads(self.run("-c", LICENSES_PROGRAM))
        return licenses


def create_environment(folder: Path, version: str) -> Environment | None:
    """Create an empty environment for a version of Python; return None where the machine has no such Python."""
    shutil.rmtree(folder, ignore_errors=True)
    found = subprocess.run([UV, "python", "find", version], capture_output=True, text=True, check=False)
    if found.returncode:
        return None
    run([UV, "venv", "--quiet", "--python", found.stdout.strip(), folder])
    return Environment(folder / "bin" / "python")


def try_first_commands(environment: Environment, folder: Path) -> None:
    """Run the first example of the README, the command line and the embedded server."""
    program = README_BLOCK.findall((ROOT / "README.md").read_text())[0]
    if "loss" not in environment.run("-c", program):
        raise TrialError("the first example of the README printed no loss")
    environment.run("-m", "tinkerwire", "--version")
    environment.run("-m", "tinkerwire", "serve", "--help")
    if "tinkerwire/" not in environment.run("-c", SERVER_PROGRAM, folder):
        raise TrialError("`tinkerwire serve` lists no model")


def try_generator(environment: Environment, folder: Path) -> None:
    """Generate the package from the contract in the wheel, and export a document."""
    generated = folder / "generated"
    environment.run("-m", "tinkerwire_codegen", "generate", "--out", generated)
    if not (generated / "tinkerwire_generated" / "models").is_dir():
        raise TrialError("the generator wrote no models")
    environment.run("-m", "tinkerwire_codegen", "export", "--wire", "0.38.0", "--format", "openapi-yaml")


def resolve_extra(wheel: Path, extra: str, version: str) -> int:
    """Return how many distributions an extra requires on a version of Python, from wheels alone."""
    command = [UV, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python-version", version, "-"]
    requirement = f"tinkerwire[{extra}] @ {wheel.as_uri()}\n"
    listed = run([*command, "--only-binary", ":all:"], text=requirement)
    return sum("==" in line for line in listed.splitlines()) + 1


def run(command: list[object], *, cwd: Path = ROOT, text: str | None = None) -> str:
    """Run a command and return what it prints; raise TrialError with the end of its errors."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TINKER", "PYTHON", "VIRTUAL_ENV"))}
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, input=text, capture_output=True, text=True, timeout=SECONDS, env=clean, check=False
    )
    if done.returncode:
        raise TrialError(
            f"{' '.join(words)[:300]}: exit code {done.returncode}\n{(done.stderr or done.stdout)[-2000:]}"
        )
    return done.stdout
