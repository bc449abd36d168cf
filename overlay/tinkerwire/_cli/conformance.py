"""The command ``tinkerwire conformance``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .._extras import require_packages
from .errors import CommandFailed, clean_line
from .exit_codes import EXIT_FAILED, EXIT_INTERRUPTED
from .framework import WRITABLE, SharedOptions, command, pass_options
from .output import STDOUT, Table, print_result, report

if TYPE_CHECKING:
    from .._conformance.report.baseline import Comparison
    from .._conformance.report.run_report import RunReport
    from .._conformance.requirement import Requirement

LEVELS = ("must", "should", "may")
EXIT_UNREACHABLE = 3
SELECTABLE = re.compile(r"[A-Za-z_]{1,30}(-\d{1,4})?")
"""Names of areas and ids; other text may be a key, and is not repeated in an error."""


@command("conformance", shared_options=False)
@click.argument("url", required=False)
@click.option("--wire", metavar="VERSION", help="Wire version to test; by default it is found out.")
@click.option("--model", metavar="NAME", help="Base model to test with; by default the first of the server.")
@click.option("--api-key", help="API key; TINKER_API_KEY keeps it out of the list of processes.")
@click.option(
    "--only",
    multiple=True,
    metavar="AREA|ID",
    help="Test an area, a prefix such as FUT, or an id, with what it needs; repeatable.",
)
@click.option(
    "--level", type=click.Choice(LEVELS), default="may", show_default=True, help="Lowest level of requirements to test."
)
@click.option("--junit", type=WRITABLE, metavar="FILE", help="Write the report as JUnit XML.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="Write the report as JSON; - prints it in place of the table.",
)
@click.option("--html", type=WRITABLE, metavar="FILE", help="Write the report as a page that needs no network.")
@click.option("--badge", type=WRITABLE, metavar="FILE", help="Write a badge as SVG.")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="JSON report of an earlier run; show what got better and worse.",
)
@click.option("--list", "lists", is_flag=True, help="List the requirements, without a server.")
@click.option("--keep-going", is_flag=True, help="Continue after the server was lost, for servers that come back.")
@click.option(
    "--max-minutes", type=click.FloatRange(0, min_open=True), metavar="N", help="End the tests after N minutes."
)
@pass_options
@click.pass_context
def cli(
    ctx: click.Context,
    options: SharedOptions,
    url: str | None,
    wire: str | None,
    model: str | None,
    api_key: str | None,
    only: tuple[str, ...],
    level: str,
    junit: Path | None,
    json_file: Path | None,
    html: Path | None,
    badge: Path | None,
    baseline: Path | None,
    lists: bool,
    keep_going: bool,
    max_minutes: float | None,
) -> None:
    """Test any server of the Tinker API against the contract.

    URL is the address of the server; local starts an embedded server for the run. What the tests make on the server
    is deleted; Ctrl-C ends them early, with a report of what was tested.

    Exit codes: 0 if all musts hold, 1 if some do not or were not tested, 2 for wrong usage, 3 if the server cannot be
    reached.
    """
    require_packages("tinkerwire conformance", "conformance", "httpx", "jsonschema_rs", "schemathesis")
    # Other commands load neither the kit nor its packages.
    from tinkerwire_base.errors import APIConnectionError  # noqa: PLC0415

    from .._conformance.report.baseline import compare, read_baseline  # noqa: PLC0415
    from .._conformance.report.json_report import describe_report  # noqa: PLC0415
    from ..conformance import load_requirements, run_conformance  # noqa: PLC0415
    from .conformance_text import RunProgress, print_report  # noqa: PLC0415

    requirements = _select(only, level, wire)
    if lists:
        _print_list(options, requirements)
        return
    if not url:
        raise click.UsageError("argument URL is missing", ctx)
    options.as_json |= str(json_file) == STDOUT
    files = {
        name: path
        for name, path in {"--junit": junit, "--json": json_file, "--html": html, "--badge": badge}.items()
        if path is not None and str(path) != STDOUT
    }
    _require_writable(files, baseline)
    with _usage_errors("--baseline"):
        old = None if baseline is None else read_baseline(baseline)
    progress = RunProgress(options)
    try:
        result = run_conformance(
            url,
            api_key=api_key or os.environ.get("TINKER_API_KEY") or None,
            wire=wire,
            model=model,
            only=only,
            level=level,
            keep_going=keep_going,
            max_minutes=max_minutes,
            observer=progress,
        )
    except APIConnectionError as error:
        click.echo(
            clean_line(f"tinkerwire conformance: {error}; check the URL, the key, and that the server runs"), err=True
        )
        ctx.exit(EXIT_UNREACHABLE)
    except ValueError as error:
        raise click.UsageError(str(error), ctx) from error
    finally:
        progress.close()
    comparison = None if old is None else compare(result, old, load_requirements())
    if options.as_json:
        print_result(options, describe_report(result, comparison), "")
    else:
        print_report(result, comparison)
    _write(result, comparison, files)
    for name, path in files.items():
        report(options, f"The report of {name} is in {path}.")
    ctx.exit(EXIT_INTERRUPTED if result.is_interrupted else 0 if result.holds else EXIT_FAILED)


def _select(only: tuple[str, ...], level: str, wire: str | None) -> list[Requirement]:
    """Return the requirements to test; an unknown name or wire version is a usage error."""
    from .._conformance.catalogue import select_requirements  # noqa: PLC0415
    from .._conformance.requirement import Level  # noqa: PLC0415
    from .._server.http.openapi import load_contract  # noqa: PLC0415

    if not all(SELECTABLE.fullmatch(name) for name in only):
        raise click.UsageError("argument --only: a value is neither an area nor an id; --list shows all")
    with _usage_errors("--only"):
        requirements = select_requirements(only, Level(level))
    if wire is None:
        return requirements
    with _usage_errors("--wire"):
        load_contract(wire)
    return [requirement for requirement in requirements if requirement.applies_to(wire)]


def _print_list(options: SharedOptions, requirements: list[Requirement]) -> None:
    rows = [
        (
            requirement.id,
            requirement.level.value,
            requirement.since if requirement.until is None else f"{requirement.since} to before {requirement.until}",
            requirement.sentence,
        )
        for requirement in requirements
    ]
    data = [dict(zip(("id", "level", "wire", "sentence"), row, strict=True)) for row in rows]
    print_result(options, {"requirements": data}, Table(("Id", "Level", "Wire", "Requirement"), rows))


def _require_writable(files: dict[str, Path], baseline: Path | None) -> None:
    """Raise an error before the run if a file cannot be written after it."""
    paths = [path.resolve() for path in files.values()]
    if len(set(paths)) < len(paths):
        raise click.UsageError(f"{' and '.join(files)} need a file each")
    if baseline is not None and baseline.resolve() in paths and files.get("--json", baseline).resolve() not in paths:
        raise click.UsageError("argument --baseline: the file would be overwritten by another report")
    for name, path in files.items():
        if not path.parent.is_dir():
            raise CommandFailed(f"{name}: the folder {path.parent} does not exist; create it")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise CommandFailed(f"{name}: {path} cannot be written; check the permissions of the file and its folder")


def _write(result: RunReport, comparison: Comparison | None, files: dict[str, Path]) -> None:
    """Write the reports; the failure of one does not keep back the others."""
    from .._conformance.report.badge import render_badge  # noqa: PLC0415
    from .._conformance.report.html_report import render_html  # noqa: PLC0415
    from .._conformance.report.json_report import render_json  # noqa: PLC0415
    from .._conformance.report.junit import render_junit  # noqa: PLC0415

    contents = {
        "--junit": lambda: render_junit(result),
        "--json": lambda: render_json(result, comparison).encode(errors="replace"),
        "--html": lambda: render_html(result, comparison).encode(errors="replace"),
        "--badge": lambda: render_badge(result).encode(),
    }
    failures = []
    for name, path in files.items():
        try:
            path.write_bytes(contents[name]())
        except OSError as error:
            failures.append(f"{name}: {path} cannot be written: {error.strerror}")
    if failures:
        raise CommandFailed("; ".join(failures))


@contextmanager
def _usage_errors(flag: str) -> Iterator[None]:
    """End the command with a usage error that names the flag, if the block raises ValueError or OSError."""
    try:
        yield
    except OSError as error:
        raise click.UsageError(f"argument {flag}: {error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise click.UsageError(f"argument {flag}: {error}") from error
