"""The distributions, built and tried: archives, metadata, installation on each Python, extras, licences and SBOM.

python -m tests.rigs.dist.run     writes dist/ and docs/distribution.md
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tests.rigs.dist.archives import find_differences, find_faults
from tests.rigs.dist.environments import (
    PYTHONS,
    UV,
    TrialError,
    create_environment,
    resolve_extra,
    run,
    try_first_commands,
    try_generator,
)
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ROOT, ensure_venv

if sys.version_info >= (3, 11):
    import tomllib

DIST = ROOT / "dist"
BUILD = ROOT / "build" / "dist"
GENERATOR_SINCE = "3.11"
"""First Python for which the extra `codegen` has the generator."""


class Report:
    """Outcome of each check, printed as it comes."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []
        self.failed = False

    def check(self, name: str, work: Callable[[], str]) -> None:
        """Run a check, which returns its outcome or raises TrialError."""
        try:
            outcome = work()
        except TrialError as error:
            self.failed = True
            outcome = f"failed: {str(error).splitlines()[0]}"
            print(f"{name}: {error}", flush=True)  # noqa: T201
        else:
            print(f"{name}: {outcome}", flush=True)  # noqa: T201
        self.rows.append((name, outcome))


def main() -> int:
    """Build, check and report; return 1 if a check failed."""
    shutil.rmtree(DIST, ignore_errors=True)
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    tools = ensure_venv("dist", Path(__file__).with_name("requirements.txt"))
    wheel, sdist = build(tools)
    report, licenses = Report(), dict[str, str]()
    report.check("files", lambda: check_files(tools, wheel, sdist))
    report.check("`twine check --strict`", lambda: check_metadata(tools, wheel, sdist))
    for version in PYTHONS:
        report.check(f"Python {version}", lambda version=version: try_python(wheel, version))
        report.check(
            f"Python {version}, oldest versions", lambda version=version: try_python(wheel, version, "lowest-direct")
        )
    extras = list_extras()
    for extra in extras:
        report.check(f"extra `{extra}`", lambda extra=extra: resolve_on_all(wheel, extra))
    report.check("licences", lambda: collect_licenses(wheel, extras, licenses))
    report.check("SBOM", lambda: write_sbom(tools, wheel))
    write_section(DOCS / "distribution.md", "measured", render(report, licenses, wheel), title="Distribution")
    return 1 if report.failed else 0


def build(tools: Path) -> tuple[Path, Path]:
    """Build wheel and sdist with the locked build backend."""
    run([UV, "build", "--quiet", "--no-build-isolation", "--python", tools, "--out-dir", DIST])
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def check_files(tools: Path, wheel: Path, sdist: Path) -> str:
    """Compare the archives with the repository, and the wheel with one that is built from the repository."""
    faults = list(find_faults(wheel, sdist))
    run([UV, "build", "--quiet", "--wheel", "--no-build-isolation", "--python", tools, "--out-dir", BUILD / "again"])
    faults += [f"{name} differs between two builds" for name in find_differences(wheel, BUILD / "again" / wheel.name)]
    if faults:
        raise TrialError("; ".join(faults[:10]))
    return f"wheel {wheel.stat().st_size / 2**20:.2f} MiB, sdist {sdist.stat().st_size / 2**20:.2f} MiB"


def check_metadata(tools: Path, wheel: Path, sdist: Path) -> str:
    """Let twine check the metadata and the README."""
    run([tools, "-m", "twine", "--no-color", "check", "--strict", wheel, sdist])
    return "passed"


def try_python(wheel: Path, version: str, resolution: str = "highest") -> str:
    """Install the wheel in an empty environment of one Python, and try the first commands."""
    folder = BUILD / f"python-{version}-{resolution}"
    environment = create_environment(folder, version)
    if environment is None:
        return "not tried, this machine has no such Python"
    environment.install(wheel, "", "--resolution", resolution)
    environment.run("-c", "import tinkerwire; tinkerwire.ServiceClient(base_url='http://127.0.0.1:9', api_key='tml-x')")
    environment.install(wheel, "server", "--resolution", resolution)
    try_first_commands(environment, folder / "data")
    if resolution != "highest" or version < GENERATOR_SINCE:
        return "example, command line, embedded server"
    environment.install(wheel, "codegen")
    try_generator(environment, folder)
    return "example, command line, embedded server, generator"


def list_extras() -> list[str]:
    """Return the extras of the package."""
    return sorted(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def resolve_on_all(wheel: Path, extra: str) -> str:
    """Resolve an extra for each Python."""
    return ", ".join(f"{version}: {resolve_extra(wheel, extra, version)}" for version in PYTHONS)


def collect_licenses(wheel: Path, extras: list[str], licenses: dict[str, str]) -> str:
    """Install all extras in one environment, and collect the licences."""
    environment = create_environment(BUILD / "extras", f"{sys.version_info.major}.{sys.version_info.minor}")
    if environment is None:
        raise TrialError("uv does not find the Python that runs this program")
    environment.install(wheel, ",".join(extras))
    licenses.update(environment.list_licenses())
    unknown = sorted(name for name, text in licenses.items() if not text or text == "UNKNOWN")
    if unknown:
        raise TrialError(f"the metadata of these has no licence: {', '.join(unknown)}")
    return f"{len(licenses)} distributions with all extras"


def write_sbom(tools: Path, wheel: Path) -> str:
    """Write the bill of materials of an environment with the wheel and the extra `server`."""
    environment = create_environment(BUILD / "sbom", f"{sys.version_info.major}.{sys.version_info.minor}")
    if environment is None:
        raise TrialError("uv does not find the Python that runs this program")
    environment.install(wheel, "server")
    file = DIST / "tinkerwire.cdx.json"
    command = [tools, "-m", "cyclonedx_py", "environment", "--pyproject", ROOT / "pyproject.toml", "--validate"]
    run([*command, "--output-reproducible", "--output-file", file, environment.python])
    return f"{file.name}, CycloneDX, valid"


def render(report: Report, licenses: dict[str, str], wheel: Path) -> str:
    """Render the report as Markdown."""
    lines = [
        f"Made by `make dist` for {wheel.name}, {sys.platform}. Each Python has an empty environment, in which the "
        "wheel is installed without extras, with `server` and with `codegen`; then the first example of the README, the "
        "command line, `tinkerwire serve` and the generator run. Oldest versions: the lowest that the ranges of the "
        "package allow. Extras: distributions that each requires by version of Python, from wheels alone.",
        "",
        "| check | outcome |",
        "|---|---|",
        *(f"| {name} | {outcome} |" for name, outcome in report.rows),
        "",
        "## Licences",
        "",
        "As the metadata of each distribution states it, with all extras.",
        "",
        "| distribution | licence |",
        "|---|---|",
        *(f"| {name} | {text} |" for name, text in sorted(licenses.items(), key=lambda row: row[0].lower())),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
