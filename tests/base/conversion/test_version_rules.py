"""Tests of version rules: the ranges of versions, and the checks of a model before it is sent."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from tinkerwire_base.conversion.version_rules import VersionRules, dialect_error, protobuf_only_checks
from tinkerwire_base.conversion.versioning import VersionRange
from tinkerwire_base.errors import DialectError
from tinkerwire_base.unset import UNSET


@attrs.define
class Thing:
    """Model with a field of each kind that rules check."""

    _extra_keys = "allow"

    kept: Any = None
    new: Any = None
    gone: Any = attrs.field(default=7, metadata={"wire": "goneOnTheWire"})
    array: Any = attrs.field(factory=list)
    hidden: Any = attrs.field(default=None, metadata={"protobuf_only": True})
    extra_fields: dict[str, Any] = attrs.field(factory=dict)


FIELDS: dict[str, dict[str, VersionRange]] = {
    "Thing": {"new": ("0.5.0", None), "goneOnTheWire": ("0.1.0", "0.4.0"), "array": ("0.5.0", "0.7.0")}
}


def make_rules(oldest: str, newest: str, **tables: Any) -> VersionRules:
    """Return rules with tables of the availability."""
    return VersionRules(min_version=oldest, max_version=newest, **{"fields": FIELDS, **tables})


def find_errors(rules: VersionRules, thing: Any) -> list[DialectError]:
    """Return the errors of all checks of a model."""
    errors = []
    for check in rules.checks(type(thing)):
        try:
            check(thing)
        except DialectError as error:
            errors.append(error)
    return errors


@pytest.mark.parametrize(
    ("span", "may_have", "always_has"),
    [
        (("0.4.0", None), True, True),
        (("0.4.1", None), True, False),
        (("0.6.0", None), True, False),
        (("0.6.1", None), False, False),
        (("0.1.0", "0.4.0"), False, False),
        (("0.1.0", "0.4.1"), True, False),
        (("0.1.0", "0.6.0"), True, False),
        (("0.1.0", "0.6.1"), True, True),
        (("0.5.0", "0.5.1"), True, False),
        (("0.10.0", None), False, False),
    ],
)
def test_span_is_compared_with_both_ends_of_the_range(span: VersionRange, may_have: bool, always_has: bool) -> None:
    """A span begins with its first version and ends before its second; versions are compared as numbers."""
    rules = make_rules("0.4.0", "0.6.0")
    assert rules.may_have(span) is may_have
    assert rules.always_has(span) is always_has
    assert rules.may_have(None)
    rules.require("x", None)
    if may_have:
        rules.require("x", span)
    else:
        with pytest.raises(DialectError, match=r"^x is not in wire 0.6.0: it exists from"):
            rules.require("x", span)


def test_range_must_not_be_empty() -> None:
    """One version is a range, and its name has the newest version."""
    assert VersionRules(min_version="0.4.0").max_version == "0.4.0"
    assert VersionRules(min_version="0.4.0", max_version="0.6.0").name == "wire 0.6.0"
    with pytest.raises(ValueError, match=r"^wire versions: 0.10.0 must not be newer than 0.9.0$"):
        VersionRules(min_version="0.10.0", max_version="0.9.0")


def test_error_names_the_thing_and_its_versions() -> None:
    """The attributes of the error are those of the text."""
    error = dialect_error("Thing.a", "0.6.0", "0.7.0", "0.9.0", name="the test")
    assert str(error).startswith("Thing.a is not in the test: it exists from 0.7.0 to before 0.9.0; omit it")
    assert (error.what, error.version, error.since, error.until) == ("Thing.a", "0.6.0", "0.7.0", "0.9.0")
    assert str(dialect_error("a", "0.6.0", "0.7.0", None)).startswith(
        "a is not in wire 0.6.0: it exists from 0.7.0 on;"
    )


def test_fields_are_sorted_by_their_versions() -> None:
    """Fields are absent, present in some versions, or not mentioned; the names are those of Python."""
    assert make_rules("0.4.0", "0.4.9").absent_fields(Thing) == {
        "new": ("0.5.0", None),
        "gone": ("0.1.0", "0.4.0"),
        "array": ("0.5.0", "0.7.0"),
    }
    assert make_rules("0.3.0", "0.5.0").absent_fields(Thing) == {}
    assert make_rules("0.3.0", "0.5.0").partially_supported_fields(Thing) == ["new", "gone", "array"]
    assert make_rules("0.5.0", "0.5.0").partially_supported_fields(Thing) == []
    assert make_rules("0.6.0", "0.7.0").partially_supported_fields(Thing) == ["array"]


def test_absent_field_accepts_its_default_only() -> None:
    """A default that a factory makes counts, also if the value is an array."""
    rules = make_rules("0.4.0", "0.4.0")
    assert find_errors(rules, Thing()) == []
    assert find_errors(rules, Thing(kept=5, gone=7, array=np.array([]))) == []
    errors = find_errors(rules, Thing(new=1, gone=8, array=np.array([3])))
    assert [(error.what, error.since, error.until) for error in errors] == [
        ("Thing.new", "0.5.0", None),
        ("Thing.gone", "0.1.0", "0.4.0"),
        ("Thing.array", "0.5.0", "0.7.0"),
    ]
    assert find_errors(make_rules("0.3.0", "0.5.0"), Thing(new=1, gone=8, array=[3])) == []


def test_absent_model_and_unknown_keys_are_rejected() -> None:
    """A model of other versions is an error, and so are keys without a name before their version."""
    later: VersionRange = ("0.5.0", None)
    types = {"Thing": later, "Other": later}
    assert [error.what for error in find_errors(make_rules("0.4.0", "0.4.0", types=types), Thing())] == ["Thing"]
    assert find_errors(make_rules("0.5.0", "0.5.0", types=types), Thing()) == []
    fields = {"Thing": {"*": later}}
    rules = make_rules("0.4.0", "0.4.0", fields=fields)
    assert find_errors(rules, Thing()) == []
    (error,) = find_errors(rules, Thing(extra_fields={"a": 1}))
    assert (error.what, error.since) == ("Thing.extra_fields", "0.5.0")
    assert find_errors(make_rules("0.4.0", "0.5.0", fields=fields), Thing(extra_fields={"a": 1})) == []


@pytest.mark.parametrize("missing", [None, UNSET])
def test_required_field_must_have_a_value(missing: Any) -> None:
    """A field is required if all versions of the range require it, in any one of its spans."""
    required = {"Thing": {"kept": (("0.1.0", "0.2.0"), ("0.4.0", None))}}
    rules = make_rules("0.4.0", "0.6.0", required=required)
    (error,) = find_errors(rules, Thing(kept=missing))
    assert str(error) == "Thing.kept is required in wire 0.6.0; give it a value"
    assert (error.what, error.version) == ("Thing.kept", "0.6.0")
    assert find_errors(rules, Thing(kept=0)) == []
    assert find_errors(make_rules("0.3.0", "0.6.0", required=required), Thing(kept=missing)) == []


def test_values_are_checked_by_their_versions() -> None:
    """Only a text that no version of the range allows is rejected."""
    values = {"Thing": {"goneOnTheWire": {"late": ("0.5.0", None), "early": ("0.1.0", None)}}}
    rules = make_rules("0.3.0", "0.4.0", values=values, fields={})
    (error,) = find_errors(rules, Thing(gone="late"))
    assert (error.what, error.since) == ("Thing.gone 'late'", "0.5.0")
    for value in ("early", "other", ["late"], None):
        assert find_errors(rules, Thing(gone=value)) == []
    assert find_errors(make_rules("0.3.0", "0.5.0", values=values, fields={}), Thing(gone="late")) == []


@pytest.mark.parametrize(
    ("kind", "items", "others"),
    [
        ("boolean", [True], [1, 0.0, "a"]),
        ("integer", [3], [True, 1.5, "3"]),
        ("number", [1.5], [1, True, "1.5"]),
        ("string", ["a"], [1, 1.5, None]),
    ],
)
def test_types_of_scalars_are_checked_at_any_depth(kind: str, items: list[Any], others: list[Any]) -> None:
    """A scalar of the exact type is found within lists, tuples, mappings and arrays."""
    tables = {"scalar_types": {"Thing": {"kept": {kind: ("0.5.0", None)}}}, "fields": {}}
    rules = make_rules("0.4.0", "0.4.0", **tables)
    for value in (items[0], items, [others, items], ({"a": {"b": tuple(items)}},), np.array(items)):
        (error,) = find_errors(rules, Thing(kept=value))
        assert (error.what, error.since) == (f"Thing.kept with a {kind} in it", "0.5.0")
    for value in (*others, others, {"a": others}, [], None):
        assert find_errors(rules, Thing(kept=value)) == []
    assert find_errors(make_rules("0.4.0", "0.5.0", **tables), Thing(kept=items)) == []


def test_fields_of_protobuf_must_have_their_defaults_in_json() -> None:
    """The other fields have no such check."""
    (check,) = protobuf_only_checks(Thing, "0.6.0")
    check(Thing(kept=1))
    with pytest.raises(DialectError, match=r"^JSON cannot represent Thing.hidden; leave it at its default") as caught:
        check(Thing(hidden=1))
    assert (caught.value.what, caught.value.version) == ("Thing.hidden", "0.6.0")
