"""Mappings with known keys: stored entries, lists of pairs, and values read as mappings."""

from __future__ import annotations

from .values import Choice, Entry, Items, Mapping, Text, Value, is_none, options_of


def as_mapping(value: Value) -> Mapping:
    """Return a value as a mapping; a value of another kind becomes its unknown rest."""
    if isinstance(value, Mapping):
        return value
    if is_none(value):
        return Mapping()
    pairs = pairs_to_mapping(value)
    if pairs is not None:
        return pairs
    if isinstance(value, Choice):
        mappings = [as_mapping(option) for option in value.options]
        entries = {
            key: Entry(entry.value, optional=True) for mapping in mappings for key, entry in mapping.entries.items()
        }
        return Mapping(entries, tuple(rest for mapping in mappings for rest in mapping.rest))
    return Mapping({}, (value,))


def pairs_to_mapping(value: Value) -> Mapping | None:
    """Return a list of pairs as a mapping; None for another value."""
    if not isinstance(value, Items) or not all(isinstance(p, Items) and len(p.values) == 2 for p in value.values):
        return None
    mapping = Mapping()
    for pair in value.values:
        assert isinstance(pair, Items)
        mapping = store(mapping, pair.values[0], pair.values[1])
    return mapping


def store(mapping: Mapping, key: Value, value: Value, *, optional: bool = False) -> Mapping:
    """Return a mapping with one more entry; a key that is not known goes to the rest."""
    keys = [option.constant if isinstance(option, Text) else None for option in options_of(key)]
    if None in keys:
        return Mapping(mapping.entries, (*mapping.rest, key))
    entries = dict(mapping.entries)
    for name in keys:
        assert name is not None
        entries[name] = Entry(value, optional or len(keys) > 1)
    return Mapping(entries, mapping.rest)
