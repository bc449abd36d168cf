"""Edits of YAML keep comments, order, quotes and line breaks of all that does not change."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tinkerwire_codegen.official.absorb.yaml_style import WIDTH
from tinkerwire_codegen.official.absorb.yaml_text import rewrite_yaml

SCHEMA = Path(__file__).parents[4] / "schema"
TEXT = """\
# Top of the file.
components:
  schemas:
    # About the colour.
    Colour:
      description: Kind of colour.
      type: string
      enum: [red, "green"]  # not blue
    Box:
      description: >-
        A box, with a text that is
        folded.
      type: object
      required: [size]
      properties:
        size: {type: integer, description: 'Size: in m.'}
        # The lid.
        lid:
          description: Lid.
          anyOf: [{$ref: '#/components/schemas/Colour'}, {type: 'null'}]
      parts:
        - {name: a, in: query}
        - name: b
          in: query
"""


def schemas(content: Any) -> Any:
    return content["components"]["schemas"]


def add_value(content: Any) -> None:
    schemas(content)["Colour"]["enum"].append("blue")
    schemas(content)["Colour"]["x-enum-since"] = {"blue": "0.2.0"}


def end_field(content: Any) -> None:
    lid = schemas(content)["Box"]["properties"]["lid"]
    schemas(content)["Box"]["properties"]["lid"] = {"description": lid["description"], "x-until": "0.2.0", **lid}


def add_field(content: Any) -> None:
    schemas(content)["Box"]["properties"]["weight"] = {"type": "number", "default": 0.5, "description": "Weight."}


def remove_field(content: Any) -> None:
    del schemas(content)["Box"]["properties"]["lid"]


def add_parts(content: Any) -> None:
    schemas(content)["Box"]["parts"] += [{"name": "c", "in": "query"}, {"name": "d", "in": "path"}]


def remove_part(content: Any) -> None:
    del schemas(content)["Box"]["parts"][0]


def change_part(content: Any) -> None:
    schemas(content)["Box"]["parts"][1]["x-until"] = "0.2.0"


def add_schema(content: Any) -> None:
    schemas(content)["Lid"] = {"description": "A lid.", "type": "object", "properties": {"a": {"type": "string"}}}


def replace_description(content: Any) -> None:
    schemas(content)["Box"]["description"] = "word " * 60 + "end."


@pytest.mark.parametrize(
    ("edit", "removed", "added"),
    [
        (
            add_value,
            ['enum: [red, "green"]  # not blue'],
            ['enum: [red, "green", blue]  # not blue', "x-enum-since: {blue: 0.2.0}"],
        ),
        (end_field, [], ["x-until: 0.2.0"]),
        (add_field, [], ["weight: {type: number, default: 0.5, description: Weight.}"]),
        (add_parts, [], ["- {name: c, in: query}", "- {name: d, in: path}"]),
        (change_part, [], ["x-until: 0.2.0"]),
        (remove_part, ["- {name: a, in: query}"], []),
        (
            remove_field,
            [
                *("# The lid.", "lid:", "description: Lid."),
                "anyOf: [{$ref: '#/components/schemas/Colour'}, {type: 'null'}]",
            ],
            [],
        ),
        (
            add_schema,
            [],
            ["Lid:", "description: A lid.", "type: object", "properties:", "a: {type: string}"],
        ),
    ],
)
def test_only_the_changed_lines_change(edit: Callable[[Any], None], removed: list[str], added: list[str]) -> None:
    """The lines of the text but for those of the change stay as they are, with their comments."""
    content = yaml.safe_load(TEXT)
    edit(content)
    edited = rewrite_yaml(TEXT, content)
    assert yaml.safe_load(edited) == content
    lines = list(difflib.ndiff(TEXT.splitlines(), edited.splitlines()))
    assert [line[2:].strip() for line in lines if line.startswith("- ")] == removed
    assert [line[2:].strip() for line in lines if line.startswith("+ ")] == added


def test_long_texts_are_folded() -> None:
    """A text that does not fit on a line is folded, and reads back as it was."""
    content = yaml.safe_load(TEXT)
    replace_description(content)
    edited = rewrite_yaml(TEXT, content)
    assert yaml.safe_load(edited) == content
    assert max(map(len, edited.splitlines())) <= WIDTH


def test_equal_content_leaves_the_text() -> None:
    """All files of the contract stay as they are without a change."""
    for file in SCHEMA.glob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        assert rewrite_yaml(text, yaml.safe_load(text)) == text


@pytest.mark.parametrize("file", ["openapi.yaml", "errors.yaml", "service.yaml", "optimizers.yaml"])
def test_every_node_of_the_contract_can_be_removed_and_added(file: str) -> None:
    """Removing each entry of two levels gives the rest; adding it again gives the content from before."""
    text = (SCHEMA / file).read_text(encoding="utf-8")
    original = yaml.safe_load(text)
    for section, nodes in original.items():
        for name in nodes if isinstance(nodes, dict) and len(nodes) > 1 else ():
            content = copy.deepcopy(original)
            del content[section][name]
            shorter = rewrite_yaml(text, content)
            assert yaml.safe_load(shorter) == content
            assert yaml.safe_load(rewrite_yaml(shorter, original)) == original


def test_yaml_with_anchors_is_rejected() -> None:
    """A file that cannot be edited in place is an error; it is not written wrongly."""
    with pytest.raises(ValueError, match="cannot be edited in place"):
        rewrite_yaml("a: &x {b: 1}\nc: *x\n", {"a": {"b": 2}, "c": {"b": 1}})
