"""Tests of the built site: it builds without warnings, needs no network, and has every public name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from filelock import FileLock

import tinkerwire
import tinkerwire.auth
import tinkerwire.conformance
import tinkerwire.dropin
import tinkerwire.local
import tinkerwire.testing
import tinkerwire.training
from tinkerwire._cli.commands import COMMANDS
from tinkerwire_generated import models

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "docs" / "site" / "mkdocs.yml"
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "video": "src"}
"""Elements that make a browser load something, with the attribute that names it."""
LINK_RELATIONS = frozenset({"stylesheet", "icon", "preload", "preconnect", "modulepreload", "manifest"})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does, once for all workers of this run."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    folder = shared / "site"
    with FileLock(shared / "site.lock", timeout=280):
        if not (folder / "sitemap.xml").exists():
            build(folder)
    return folder


def build(folder: Path) -> None:
    """Build the site in a folder."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    command += ["--config-file", str(CONFIG), "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    # Quiet builds drop warnings before they are counted, so that a strict one would pass.
    assert run.returncode == 0 and "Documentation built" in run.stderr, run.stdout + run.stderr


class Resources(HTMLParser):
    """Parser that collects what a page loads, and the ids of its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses and the id of one element."""
        values = dict(attrs)
        self.ids.add(values.get("id") or "")
        is_loaded = tag != "link" or bool(LINK_RELATIONS & set((values.get("rel") or "").split()))
        if tag in LOADING and is_loaded:
            self.loaded.append(values.get(LOADING[tag]) or "")


def list_pages(site: Path) -> Iterator[tuple[Path, Resources]]:
    """Yield the pages of the site with their resources."""
    for page in sorted(site.rglob("*.html")):
        # Only web servers show the page for missing pages, which has absolute addresses.
        if page.name != "404.html":
            yield page, Resources(page.read_text())


@pytest.mark.timeout(300)
def test_site_loads_nothing_from_the_network(site: Path) -> None:
    """Scripts, styles, fonts and pictures of every page are files of the site."""
    pages = 0
    for page, resources in list_pages(site):
        pages += 1
        for address in filter(None, resources.loaded):
            assert not re.match(r"(?:https?:)?//", address), f"{page}: {address}"
            if not address.startswith("data:"):
                assert (page.parent / address.partition("?")[0].partition("#")[0]).exists(), f"{page}: {address}"
        # The theme loads a library for diagrams from the network if a page has one.
        assert 'class="mermaid"' not in page.read_text()
    assert pages > 10
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//|@import", style.read_text()), style


@pytest.mark.timeout(300)
def test_search_works_without_a_server(site: Path) -> None:
    """The index is a script, and pages load the replacement for workers, which browsers do not allow from a disk."""
    assert (site / "search" / "search_index.js").read_text().startswith("var __index = {")
    assert any("iframe-worker" in address for address in Resources((site / "index.html").read_text()).loaded)


def list_public_names() -> Iterator[tuple[str, str]]:
    """Yield the page and the name of everything public."""
    for name in tinkerwire.__all__:
        if not name.startswith(("__", "Backcompat")) and name not in ("auth", "training", "types"):
            yield "*", name
    for name in models.__all__:
        yield "types", name
    listing = (("auth", tinkerwire.auth), ("conformance", tinkerwire.conformance), ("training", tinkerwire.training))
    for page, exporting in listing:
        yield from ((page, name) for name in exporting.__all__)
    modules = (("local", tinkerwire.local), ("testing", tinkerwire.testing), ("dropin", tinkerwire.dropin))
    for page, module in modules:
        source = Path(module.__file__ or "").read_text()
        for name in re.findall(r" import \w+ as (\w+)", source):
            yield page, name


@pytest.mark.timeout(300)
def test_reference_has_every_public_name(site: Path) -> None:
    """Every public name of each module has a heading in the reference."""
    pages = {page.stem: resources.ids for page, resources in list_pages(site / "reference")}
    everywhere = {name.rpartition(".")[2] for ids in pages.values() for name in ids}
    for page, name in list_public_names():
        names = everywhere if page == "*" else {item.rpartition(".")[2] for item in pages[page]}
        assert name in names, f"{page}: {name}"


@pytest.mark.timeout(300)
def test_every_command_is_in_the_reference(site: Path) -> None:
    """Each command has a heading on the page of options."""
    ids = Resources((site / "reference" / "command-line.html").read_text()).ids
    assert {f"tinkerwire-{name}" for name in COMMANDS} - ids == set()


@pytest.mark.timeout(300)
def test_every_client_method_is_in_the_reference(site: Path) -> None:
    """Inherited methods have entries, too."""
    ids = Resources((site / "reference" / "clients.html").read_text()).ids
    names = {name.rpartition(".")[2] for name in ids}
    for client in ("ServiceClient", "TrainingClient", "SamplingClient", "RestClient", "AdminClient"):
        methods = [name for name in dir(getattr(tinkerwire, client)) if not name.startswith("_")]
        assert not set(methods) - names
