"""The published folder of two versions: complete, valid, and without requests to other hosts."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import tarfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV30SpecValidator, OpenAPIV31SpecValidator

from tinkerwire_codegen.cli import main
from tinkerwire_codegen.compare.contracts import compare_contracts
from tinkerwire_codegen.contract.export import build_openapi
from tinkerwire_codegen.contract.openapi30 import convert_to_openapi30
from tinkerwire_codegen.contract.protobuf import FILE as PROTO
from tinkerwire_codegen.contract.protobuf import compile_descriptors
from tinkerwire_codegen.publish import renderer as renderers
from tinkerwire_codegen.publish.presence import Presence
from tinkerwire_codegen.publish.renderer import Renderer, load_renderer
from tinkerwire_codegen.publish.site import publish

SCHEMA = Path(__file__).parents[3] / "schema"
VERSIONS = ["0.16.1", "0.25.0"]
SCRIPT = 'console.log("renderer");'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("publish") / "contract"
    publish(SCHEMA, target, Renderer(SCRIPT, "license"), VERSIONS, jobs=2)
    return target


def read_script(file: Path) -> Any:
    """Read the value that a script packs."""
    found = re.fullmatch(r'window\.\w+ = "([A-Za-z0-9+/=]+)";\n', file.read_text())
    assert found, file
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


class LinkParser(HTMLParser):
    """Parser that collects what a page links to or loads."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if name in ("href", "src") and value]


def test_documents_of_each_version_are_valid(folder: Path) -> None:
    for version in VERSIONS:
        files = folder / version
        document = json.loads((files / "openapi.json").read_text())
        OpenAPIV31SpecValidator(document).validate()
        assert yaml.safe_load((files / "openapi.yaml").read_text()) == document
        assert document["info"]["version"] == version
        OpenAPIV30SpecValidator(json.loads((files / "openapi-3.0.json").read_text())).validate()
        Draft202012Validator.check_schema(json.loads((files / "schema.json").read_text()))
    assert not (folder / "0.16.1" / PROTO).exists()
    assert compile_descriptors(folder / "0.25.0" / PROTO)


@pytest.mark.parametrize("version", VERSIONS)
def test_shared_parts_do_not_change_the_meaning(folder: Path, version: str) -> None:
    exported = build_openapi(SCHEMA, version)
    document = json.loads((folder / version / "openapi.json").read_text())
    assert compare_contracts(exported, document) == []
    document30 = json.loads((folder / version / "openapi-3.0.json").read_text())
    assert compare_contracts(convert_to_openapi30(exported), document30) == []
    assert len(json.dumps(document)) < 0.75 * len(json.dumps(exported))


def test_links_lead_to_files_of_the_folder(folder: Path) -> None:
    pages = sorted(folder.glob("*.html"))
    assert [page.name for page in pages] == ["changes.html", "index.html", "reference.html"]
    for page in pages:
        parser = LinkParser()
        parser.feed(page.read_text())
        targets = [urlsplit(link) for link in parser.links if link != "data:,"]
        assert targets
        for target in targets:
            assert not target.scheme and not target.netloc, target
            assert (folder / target.path).is_file(), target
        assert "{" not in re.sub(r"<script.*</script>", "", page.read_text()), "a placeholder was not replaced"


def test_index_lists_all_files(folder: Path) -> None:
    files = json.loads((folder / "versions.json").read_text())
    assert list(files) == VERSIONS
    index = (folder / "index.html").read_text()
    for version, names in files.items():
        assert sorted([*names, "reference.js"]) == sorted(file.name for file in (folder / version).iterdir())
        assert all(f'href="{version}/{name}"' in index for name in names)


def test_nothing_is_loaded_from_another_host(folder: Path) -> None:
    for file in [*folder.glob("*.html"), *folder.glob("*.css"), *folder.glob("*.js")]:
        assert not re.search(r"https?://|url\(", file.read_text()), file


def test_reference_shows_since_and_until(folder: Path) -> None:
    old, new = (read_script(folder / version / "reference.js") for version in VERSIONS)
    schemas = new["components"]["schemas"]
    notes = [field["description"] for schema in schemas.values() for field in schema.get("properties", {}).values()]
    assert notes and all(re.search(r"\*Since [\d.]+[^*]*\.\*$", note) for note in notes)
    assert new["paths"]["/api/v1/forward_backward"]["post"]["description"].endswith("*Since 0.16.1.*")
    removed = {place for place in old["paths"] if place not in new["paths"]}
    assert removed
    for place in removed:
        for operation in old["paths"][place].values():
            assert operation["description"].endswith("*Since 0.16.1, until 0.25.0.*")


def test_reference_lists_values_that_are_newer_than_their_type() -> None:
    """A value that every version of the type has needs no note."""
    documents = {
        version: {"paths": {}, "components": {"schemas": {"Loss": {"description": "A loss.", "enum": values}}}}
        for version, values in {"1.0": ["a", "b"], "1.1": ["a", "b", "c"], "1.2": ["a", "c"]}.items()
    }
    text = Presence(documents).annotate(documents["1.1"])["components"]["schemas"]["Loss"]["description"]
    assert text == (
        'A loss. *Since 1.0, changed in 1.1, 1.2.*\n\n`"b"`: *Since 1.0, until 1.2.*\n\n`"c"`: *Since 1.1.*'
    )


def test_changes_equal_those_of_diff(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "@0.16.1", "@0.25.0", "--format", "json"]) == 0
    expected = json.loads(capsys.readouterr().out)["changes"]
    table = read_script(folder / "changes-data.js")
    assert table["pairs"].keys() == {"0.16.1"} and table["pairs"]["0.16.1"].keys() == {"0.25.0"}
    changes = [table["changes"][row] for row in table["pairs"]["0.16.1"]["0.25.0"]]
    named = [change | {"operations": [table["operations"][row] for row in change["operations"]]} for change in changes]
    assert named == expected


def test_folder_is_replaced_only_if_it_was_published(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("keep")
    with pytest.raises(ValueError, match="must be empty or a published folder"):
        publish(SCHEMA, tmp_path, Renderer(SCRIPT, ""), VERSIONS[:1])
    assert other.read_text() == "keep"
    before = {file.name: file.read_bytes() for file in (folder / "0.25.0").iterdir()}
    publish(SCHEMA, folder, Renderer(SCRIPT, "license"), VERSIONS, jobs=2)
    assert {file.name: file.read_bytes() for file in (folder / "0.25.0").iterdir()} == before


def test_unknown_version_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"9\.9\.9"):
        publish(SCHEMA, tmp_path / "contract", Renderer(SCRIPT, ""), ["9.9.9"])


def build_archive(file: Path, script: str) -> Path:
    with tarfile.open(file, "w:gz") as archive:
        for name, text in [(renderers.SCRIPT, script), *((name, "license") for name in renderers.LICENSES)]:
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return file


def test_renderer_of_another_version_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be redoc"):
        load_renderer(build_archive(tmp_path / "redoc.tgz", SCRIPT))


def test_renderer_does_not_load_its_logo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = build_archive(tmp_path / "redoc.tgz", f'src:"{renderers.LOGO}"')
    monkeypatch.setattr(renderers, "SHA256", renderers.hashlib.sha256(archive.read_bytes()).hexdigest())
    assert load_renderer(archive) == Renderer(f'src:"{renderers.EMPTY_IMAGE}"', "license\n\nlicense")
