"""The published folder: documents, reference and changes of all wire versions."""

from __future__ import annotations

import base64
import gzip
import html
import json
import shutil
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ..contract.bundle import load
from .changes import build_table, compare_with_later
from .documents import TITLES, write_documents
from .presence import Presence
from .renderer import Renderer

Json = dict[str, Any]

ASSETS = Path(__file__).parent / "assets"
PAGES = {"index.html": "contract", "reference.html": "reference", "changes.html": "changes"}
"""Names of the pages by file; they begin with HEAD."""
HEAD = "head.html"
MARKER = "versions.json"
"""File by which a published folder is recognized; only such a folder is replaced."""


def publish(folder: Path, target: Path, renderer: Renderer, versions: list[str] | None = None, jobs: int = 1) -> None:
    """Write the folder for the contract in ``folder``, by default with all versions; ``jobs`` processes work on it.

    Raises:
        ValueError: the contract cannot be loaded, lacks a version, or ``target`` has files of another kind.
    """
    info = load(folder)["info"]
    known = [str(version) for version in info.get("x-versions", [info["version"]])]
    versions = versions or known
    unknown = [version for version in versions if version not in known]
    if unknown:
        raise ValueError(f"wire version {unknown[0]} is not in x-versions of {folder}; the newest is {known[-1]}")
    versions = sorted(versions, key=known.index)
    _empty(target)
    # A forked process could inherit locks of threads, such as those of numpy.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        # Old versions have the most later ones to compare with, so they come first.
        reports = pool.map(partial(compare_with_later, folder, versions=versions), versions)
        written = list(pool.map(partial(_write_version, folder, target), versions))
        table = build_table(zip(versions, reports, strict=True))
    files = {version: names for version, (names, _) in zip(versions, written, strict=True)}
    _write_references({version: document for version, (_, document) in zip(versions, written, strict=True)}, target)
    _write_script(target / "changes-data.js", "changes", table)
    (target / MARKER).write_text(json.dumps(files, indent=1) + "\n", encoding="utf-8")
    _write_pages(info["title"], files, target)
    (target / "redoc.standalone.js").write_text(renderer.script, encoding="utf-8")
    (target / "redoc.LICENSES.txt").write_text(renderer.licenses, encoding="utf-8")


def _empty(target: Path) -> None:
    if target.exists() and any(target.iterdir()):
        if not (target / MARKER).exists():
            raise ValueError(f"{target}: must be empty or a published folder; give another --out")
        shutil.rmtree(target)
    target.mkdir(parents=True, exist_ok=True)
    # An interrupted run leaves a folder that the next run may replace.
    (target / MARKER).touch()


def _write_version(folder: Path, target: Path, version: str) -> tuple[list[str], Json]:
    return write_documents(folder, version, target / version)


def _write_references(documents: dict[str, Json], target: Path) -> None:
    """Write the document of each version, with the versions of its parts, as a script for the page."""
    presence = Presence(documents)
    for version, document in documents.items():
        _write_script(target / version / "reference.js", "reference", presence.annotate(document))


def _write_script(file: Path, name: str, value: Json) -> None:
    """Write a value as a script; pages from file:// can load scripts, but not data."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    # Without a time, equal contracts give equal folders.
    packed = base64.b64encode(gzip.compress(text, mtime=0)).decode()
    file.write_text(f'window.{name} = "{packed}";\n', encoding="utf-8")


def _write_pages(title: str, files: dict[str, list[str]], target: Path) -> None:
    rows = "\n".join(_render_row(version, names) for version, names in reversed(files.items()))
    options = "".join(f"<option>{html.escape(version)}</option>" for version in reversed(files))
    head = (ASSETS / HEAD).read_text(encoding="utf-8").rstrip()
    for asset in ASSETS.iterdir():
        text = asset.read_text(encoding="utf-8")
        if asset.name in PAGES:
            current = head.replace(f'href="{asset.name}"', f'href="{asset.name}" aria-current="page"')
            text = text.replace("{head}", current).replace("{name}", PAGES[asset.name]).replace("{rows}", rows)
            text = text.replace("{title}", html.escape(title)).replace("{options}", options)
            text = text.replace("{newest}", list(files)[-1])
        if asset.name != HEAD:
            (target / asset.name).write_text(text, encoding="utf-8")


def _render_row(version: str, names: list[str]) -> str:
    shown = html.escape(version)
    links = " ".join(
        f'<a href="{shown}/{name}" download>{TITLES[name]}</a>' if name in names else "" for name in TITLES
    )
    return f'<tr><th><a href="reference.html?version={shown}">{shown}</a></th><td>{links}</td></tr>'
