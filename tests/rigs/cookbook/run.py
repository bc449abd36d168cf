"""The cookbook's own tests, once with the official SDK 0.38.0 and once with tinkerwire in its place.

python -m tests.rigs.cookbook.run
python -m tests.rigs.cookbook.run --ours    # with tinkerwire only, against the last run of the official SDK

Both runs have the same environment, sources and files; hubs of models and data are disabled, as in
CI, so that some tests fail with both.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.rigs.cookbook.outcomes import Outcome, find_lost, read_outcomes, render_section
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ROOT, ensure_venv

from tinkerwire.dropin.finder import SUBPROCESS_SITE

FOLDER = Path(__file__).parent
WORK = ROOT / "build" / "cookbook"
VERSION = "0.6.1"
SHA256 = "edf66f0a4b2c3b375b9328a4d748a3dae104170bb2bcde0d156f0b22de7a1aa3"
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
SETS = {
    # Apart, as the first folder's conftest skips thousands of tests when it sees the second.
    "The files that call tinker": (FOLDER / "files.txt").read_text().split(),
    "downstream_compat: exports, signatures, annotations": ["tests/downstream_compat"],
}
SOURCE_FOLDERS = (ROOT / "generated", ROOT / "overlay")


def download_sources(python: Path) -> Path:
    """Return the folder of the cookbook's sources; its wheel has no tests."""
    folder, archive = WORK / f"tinker_cookbook-{VERSION}", WORK / f"tinker_cookbook-{VERSION}.tar.gz"
    if folder.exists():
        return folder
    WORK.mkdir(parents=True, exist_ok=True)
    options = ["--quiet", "--no-deps", "--no-binary", "tinker-cookbook", "--dest", str(WORK)]
    subprocess.run([str(python), "-m", "pip", "download", *options, f"tinker-cookbook=={VERSION}"], check=True)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != SHA256:
        raise SystemExit(f"{archive}: its SHA-256 is {digest}, expected {SHA256}")
    with tarfile.open(archive) as tar:
        tar.extractall(WORK, filter="data")
    return folder


def create_environment(*path: Path) -> dict[str, str]:
    """Return the environment of a run: no key, no hubs, and these folders to import from."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("TINKER_API_KEY", "CI")}
    return inherited | dict.fromkeys(OFFLINE, "1") | {"PYTHONPATH": os.pathsep.join(map(str, path))}


def ensure_cookbook_python() -> Path:
    """Return the Python of the environment with all requirements of the cookbook."""
    # By pip, which takes a CPU build of torch where pip is set up for one.
    return ensure_venv("cookbook", FOLDER / "requirements.txt", installer="pip")


def run(python: Path, folder: Path, client: str) -> list[dict[str, Outcome]]:
    """Run all sets with one client and return the outcomes of their tests."""
    environment = create_environment()
    if client == "tinkerwire":
        # As processes inherit it: the workers of the tests, and what they start.
        environment = create_environment(SUBPROCESS_SITE, *SOURCE_FOLDERS)
    command = [str(python), "-c", "import tinker; print(tinker.ServiceClient.__module__)"]
    completed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if completed.stdout.strip().partition(".")[0] != client:
        raise SystemExit(f"import tinker gives {completed.stdout.strip() or completed.stderr}, not {client}")
    return [read_outcomes(_run_pytest(python, folder, client, number, environment)) for number in range(len(SETS))]


def _run_pytest(python: Path, folder: Path, client: str, number: int, environment: dict[str, str]) -> Path:
    report = locate_junit(client, number)
    report.unlink(missing_ok=True)
    options = ["-q", "-p", "no:cacheprovider", "--timeout=120", "-n", "2", "--tb=short", f"--junitxml={report}"]
    command = [str(python), "-m", "pytest", *list(SETS.values())[number], *options]
    completed = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    report.with_suffix(".log").write_text(completed.stdout + completed.stderr)
    if not report.exists():
        raise SystemExit(f"{' '.join(command[:4])} ...: exit code {completed.returncode}\n{completed.stdout[-3000:]}")
    return report


def check_renderers(python: Path, folder: Path) -> bool:
    """Return whether the cookbook's renderers work with the byte tokenizer; print a line for each."""
    environment = create_environment(SUBPROCESS_SITE, *SOURCE_FOLDERS, folder)
    command = [str(python), str(FOLDER / "check_renderers.py")]
    return subprocess.run(command, env=environment, check=False).returncode == 0


def locate_junit(client: str, number: int) -> Path:
    """Return the path of the report of one run."""
    return WORK / f"{client}-{number}.xml"


def main() -> int:
    """Run, write the report, and return 1 when a test is lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", action="store_true", help="only tinkerwire, against the last run of the official SDK")
    options = parser.parse_args()
    python = ensure_cookbook_python()
    folder = download_sources(python)
    numbers = range(len(SETS))
    official = (
        [read_outcomes(locate_junit("tinker", n)) for n in numbers] if options.ours else run(python, folder, "tinker")
    )
    tinkerwire = run(python, folder, "tinkerwire")
    parts = [render_section(title, official[n], tinkerwire[n]) for n, title in enumerate(SETS)]
    head = (
        f"Tests of tinker-cookbook {VERSION} with the official SDK 0.38.0 and on the drop-in, by `make test-cookbook`."
    )
    write_section(DOCS / "cookbook.md", "tests", "\n\n".join([head, *parts]), title="The cookbook")
    sys.stdout.write("\n\n".join(parts) + "\n")
    has_lost = any(find_lost(official[n], tinkerwire[n]) for n in numbers)
    return int(not check_renderers(python, folder) or has_lost)


if __name__ == "__main__":
    sys.exit(main())
