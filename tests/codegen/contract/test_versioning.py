"""Projection of a contract to one version, on small documents."""

from __future__ import annotations

import pytest

from support.contract_documents import NULL, TEXT, document, operation, project_schemas, ref
from tinkerwire_base.conversion.versioning import is_available, parse_version, project, union_document


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.16.1", (0, 16, 1)), ("0.3", (0, 3, 0)), ("1", (1, 0, 0)), ("0.3.0.1", (0, 3, 0, 1))],
)
def test_version_parses_to_its_numbers(text: str, expected: tuple[int, ...]) -> None:
    """A version is its numbers, at least three."""
    assert parse_version(text) == expected


@pytest.mark.parametrize("text", ["", "newest", "0.16.x", "v0.16.1", "0..1", "0.16.-1", "0.1²", "0.16.1 "])
def test_malformed_version_is_rejected(text: str) -> None:
    """The error for anything but numbers and dots quotes the input."""
    with pytest.raises(ValueError, match="expected numbers separated by dots") as caught:
        parse_version(text)
    assert repr(text) in str(caught.value)


def test_versions_are_compared_as_numbers() -> None:
    """0.16.1 is newer than 0.6.3."""
    assert is_available({"x-since": "0.6.3"}, parse_version("0.16.1"))
    assert not is_available({"x-until": "0.6.3"}, parse_version("0.16.1"))


@pytest.mark.parametrize("version", ["0.0.9", "0.0.9.9", "0.0.0"])
def test_version_before_the_first_is_rejected(version: str) -> None:
    """The error names 0.1.0, the oldest version of the contract."""
    with pytest.raises(ValueError, match=rf"must be at least 0\.1\.0, .*, got {version}"):
        project(document(), version)


def test_schema_exists_between_since_and_until() -> None:
    """A schema exists from x-since until before x-until."""
    names = {v: list(project_schemas(v, A=TEXT | {"x-since": "0.5.0", "x-until": "0.9.0"})) for v in VERSIONS}
    assert names == {"0.3.0": [], "0.4.9": [], "0.5.0": ["A"], "0.8.1": ["A"], "0.9.0": [], "0.16.1": []}


VERSIONS = ("0.3.0", "0.4.9", "0.5.0", "0.8.1", "0.9.0", "0.16.1")


def test_absent_property_is_not_required() -> None:
    """An absent property is not required; the rest keeps its order, and an empty list is dropped."""
    schema = {
        "type": "object",
        "required": ["b", "a"],
        "properties": {"a": TEXT, "b": TEXT | {"x-since": "0.6.0"}, "c": TEXT | {"x-until": "0.6.0"}},
    }
    projected = {"type": "object", "required": ["a"], "properties": {"a": TEXT, "c": TEXT}}
    assert project_schemas("0.5.0", A=schema)["A"] == projected
    later = {"type": "object", "required": ["b", "a"], "properties": {"a": TEXT, "b": TEXT}}
    assert project_schemas("0.6.0", A=schema)["A"] == later
    single = {"type": "object", "required": ["b"], "properties": {"b": TEXT | {"x-since": "0.6.0"}}}
    assert project_schemas("0.5.0", A=single)["A"] == {"type": "object", "properties": {}}


def test_properties_named_like_keywords_stay() -> None:
    """A property may be called required, properties, enum or anyOf."""
    names = ("required", "properties", "enum", "anyOf", "content", "mapping")
    schema = {"type": "object", "properties": dict.fromkeys(names, TEXT), "required": list(names)}
    assert project_schemas("0.16.1", A=schema)["A"] == schema


def test_enum_value_exists_in_its_versions() -> None:
    """Values without marks exist in every version."""
    schema = {
        "type": "string",
        "enum": ["a", "b", "c"],
        "x-enum-since": {"b": "0.6.0"},
        "x-enum-until": {"c": "0.6.0"},
    }
    assert project_schemas("0.5.0", A=schema)["A"] == {"type": "string", "enum": ["a", "c"]}
    assert project_schemas("0.6.0", A=schema)["A"] == {"type": "string", "enum": ["a", "b"]}


def test_absent_union_member_leaves_the_mapping() -> None:
    """A member disappears by its marks or with its schema, and its tag disappears with it."""
    union = {
        "anyOf": [ref("A"), ref("B", **{"x-since": "0.6.0"}), ref("C")],
        "discriminator": {
            "propertyName": "type",
            "mapping": {name.lower(): f"#/components/schemas/{name}" for name in "ABC"},
        },
    }
    parts = {"A": TEXT, "B": TEXT, "C": TEXT | {"x-until": "0.6.0"}}
    before = project_schemas("0.5.0", U=union, **parts)["U"]
    assert before["anyOf"] == [ref("A"), ref("C")]
    assert list(before["discriminator"]["mapping"]) == ["a", "c"]
    after = project_schemas("0.6.0", U=union, **parts)["U"]
    assert after["anyOf"] == [ref("A"), ref("B")]
    assert list(after["discriminator"]["mapping"]) == ["a", "b"]


def test_union_without_members_disappears_recursively() -> None:
    """A union without members disappears, and so does a union that contains only it."""
    schemas = {
        "Outer": {"anyOf": [ref("Middle")]},
        "Middle": {"anyOf": [ref("Inner")]},
        "Inner": TEXT | {"x-since": "0.6.0"},
        "Other": {"anyOf": [ref("Middle"), NULL]},
    }
    assert project_schemas("0.5.0", **schemas) == {"Other": {"anyOf": [NULL]}}
    assert list(project_schemas("0.6.0", **schemas)) == list(schemas)


def test_history_with_a_shape_replaces_the_schema() -> None:
    """An entry with a shape replaces the whole schema, including keywords that it does not name."""
    schema = {
        "type": "object",
        "properties": {
            "a": {
                "description": "It.",
                "x-array": "int64",
                "anyOf": [ref("ID"), NULL],
                "default": None,
                "x-history": [{"until": "0.9.0", "required": True, "schema": ref("ID")}],
            }
        },
    }
    earlier = project_schemas("0.8.0", A=schema, ID=TEXT)["A"]
    assert earlier == {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"description": "It.", "x-array": "int64", **ref("ID")}},
    }
    property_schema = {"description": "It.", "x-array": "int64", "anyOf": [ref("ID"), NULL], "default": None}
    assert project_schemas("0.9.0", A=schema, ID=TEXT)["A"] == {"type": "object", "properties": {"a": property_schema}}


def test_history_without_a_shape_changes_its_keywords_only() -> None:
    """An entry without a shape changes only its own keywords; the oldest valid entry counts."""
    detail = {
        "type": "number",
        "default": 3,
        "x-history": [
            {"until": "0.9.0", "schema": {"default": 2}},
            {"until": "0.6.0", "required": False, "schema": {"default": 1}},
        ],
    }
    schema = {"type": "object", "required": ["a"], "properties": {"a": detail}}
    schemas = {v: project_schemas(v, A=schema)["A"] for v in ("0.5.0", "0.6.0", "0.9.0")}
    assert [f["properties"]["a"] for f in schemas.values()] == [{"type": "number", "default": n} for n in (1, 2, 3)]
    assert [f.get("required") for f in schemas.values()] == [None, ["a"], ["a"]]


def test_history_applies_to_a_schema() -> None:
    """A schema can have become strict."""
    schema = {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
        "x-history": [{"until": "0.6.0", "schema": {"additionalProperties": True}}],
    }
    assert project_schemas("0.5.0", A=schema)["A"]["additionalProperties"] is True
    assert project_schemas("0.6.0", A=schema)["A"]["additionalProperties"] is False


def test_path_without_operations_disappears() -> None:
    """A path without operations disappears."""
    paths = {
        "/a": {"get": operation(**{"x-since": "0.6.0"}), "post": operation(**{"x-until": "0.6.0"})},
        "/b": {"get": operation(**{"x-since": "0.6.0"})},
    }
    assert project(document(paths=paths), "0.5.0")["paths"] == {"/a": {"post": operation()}}
    assert project(document(paths=paths), "0.6.0")["paths"] == {"/a": {"get": operation()}, "/b": {"get": operation()}}


def test_parts_of_an_operation_have_versions() -> None:
    """Everything in an operation can have versions; a body without a media type disappears."""
    content = {"application/json": {"schema": TEXT, "x-until": "0.6.0"}}
    old = {"name": "p", "in": "query", "schema": TEXT}
    post = {
        "parameters": [old | {"x-until": "0.6.0"}, old | {"name": "q", "x-since": "0.6.0"}],
        "requestBody": {"required": True, "content": content},
        "responses": {
            "200": {"description": "Done.", "content": content},
            "410": {"description": "Gone.", "x-since": "0.6.0"},
        },
    }
    json_content = {"application/json": {"schema": TEXT}}
    before = project(document(paths={"/a": {"post": post}}), "0.5.0")["paths"]["/a"]["post"]
    assert before == {
        "parameters": [old],
        "requestBody": {"required": True, "content": json_content},
        "responses": {"200": {"description": "Done.", "content": json_content}},
    }
    after = project(document(paths={"/a": {"post": post}}), "0.6.0")["paths"]["/a"]["post"]
    assert after == {
        "parameters": [old | {"name": "q"}],
        "responses": {"200": {"description": "Done."}, "410": {"description": "Gone."}},
    }


def test_schema_returns_after_a_gap() -> None:
    """A schema is absent during a gap of x-absent, and present before and after."""
    schema = TEXT | {"x-since": "0.4.0", "x-absent": [{"since": "0.5.0", "until": "0.7.0"}]}
    names = {v: list(project_schemas(v, A=schema)) for v in ("0.3.0", "0.4.0", "0.5.0", "0.6.9", "0.7.0")}
    assert names == {"0.3.0": [], "0.4.0": ["A"], "0.5.0": [], "0.6.9": [], "0.7.0": ["A"]}


def test_history_gives_the_earlier_body_type() -> None:
    """History on the schema of a media type gives the type of the body at each version."""
    schemas = {"Old": TEXT | {"x-until": "0.6.0"}, "New": TEXT}
    body = ref("New", **{"x-history": [{"until": "0.6.0", "schema": ref("Old")}]})
    post = operation(requestBody={"content": {"application/json": {"schema": body}}})
    contract = document(schemas, {"/a": {"post": post}})
    for version, expected in (("0.5.0", "Old"), ("0.6.0", "New")):
        projected = project(contract, version)["paths"]["/a"]["post"]["requestBody"]
        assert projected == {"content": {"application/json": {"schema": ref(expected)}}}
    union_body = union_document(contract)["paths"]["/a"]["post"]["requestBody"]
    assert union_body == {"content": {"application/json": {"schema": ref("New")}}}


def test_unreferenced_schema_stays() -> None:
    """Only versions remove a schema; an official type without an endpoint stays."""
    assert list(project_schemas("0.16.1", Lonely=TEXT)) == ["Lonely"]


def test_other_marks_stay() -> None:
    """Projection keeps the marks that are not about versions, for the generators."""
    marks = {"x-array": "int64", "x-mixin": "B", "x-multi-segment": True, "x-undeclared": True}
    assert project_schemas("0.16.1", A=TEXT | marks)["A"] == TEXT | marks
    assert union_document(document({"A": TEXT | marks}))["components"]["schemas"]["A"] == TEXT | marks


def test_plain_document_omits_protobuf_only_parts() -> None:
    """Properties and schemas with x-protobuf-only are for models only."""
    schemas = {
        "Run": TEXT | {"x-protobuf-only": True},
        "A": {"type": "object", "properties": {"a": TEXT, "b": ref("Run")}},
    }
    schemas["A"]["properties"]["b"]["x-protobuf-only"] = True
    assert project_schemas("0.16.1", **schemas) == {"A": {"type": "object", "properties": {"a": TEXT}}}
    assert union_document(document(schemas))["components"]["schemas"] == schemas
