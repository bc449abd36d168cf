"""Values of expressions in a release, as far as its source gives them without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from .modules import Function, Symbol


@dataclass
class Environment:
    """The names around one place of a release: a module, or the body of a function in it.

    ``path`` names the functions and classes around the place, ``owner`` is the class of a method.
    """

    module: str
    path: str = ""
    owner: Symbol | None = None
    function: Function | None = None
    parent: Environment | None = None
    variables: dict[str, Value] = field(default_factory=dict)
    annotations: dict[str, Source] = field(default_factory=dict)
    depth: int = 0

    def find(self, name: str) -> Value | None:
        """Find the value of a local name, in this function or one around it."""
        here: Environment | None = self
        while here is not None:
            if name in here.variables:
                return here.variables[name]
            here = here.parent
        return None

    def find_annotation(self, name: str) -> Source | None:
        """Find the annotation of a local name."""
        here: Environment | None = self
        while here is not None:
            if name in here.annotations:
                return here.annotations[name]
            if name in here.variables:
                return None
            here = here.parent
        return None


@dataclass(frozen=True)
class Source:
    """Expression that is kept as source, with the environment that its names belong to."""

    expression: ast.expr
    environment: Environment = field(compare=False)

    @property
    def module(self) -> str:
        """Return the module of the expression."""
        return self.environment.module


@dataclass(frozen=True)
class Hole:
    """Part of a text that is only known at run time."""

    name: str


@dataclass(frozen=True)
class Text:
    """String with known parts, such as a path with variables."""

    parts: tuple[str | Hole, ...]

    @property
    def constant(self) -> str | None:
        """Return the whole string, if it has no variable part."""
        return "".join(map(str, self.parts)) if all(isinstance(part, str) for part in self.parts) else None

    def render(self) -> str:
        """Render the text with the names of its variables in braces."""
        return "".join(part if isinstance(part, str) else f"{{{part.name}}}" for part in self.parts)


@dataclass(frozen=True)
class Constant:
    """Number, boolean or None."""

    value: object


@dataclass(frozen=True)
class Parameter:
    """Parameter of a function whose argument is not known."""

    name: str
    annotation: Source | None = None
    default: Source | None = None
    is_rest: bool = False


@dataclass(frozen=True)
class Entry:
    """Entry of a mapping; ``optional`` if only some calls have it."""

    value: Value
    optional: bool = False


@dataclass(frozen=True)
class Mapping:
    """Mapping with known keys; ``rest`` holds the mappings that it includes and whose keys are not known."""

    entries: dict[str, Entry] = field(default_factory=dict)
    rest: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Items:
    """List or tuple."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    options: tuple[Value, ...]


@dataclass(frozen=True)
class Closure:
    """Function or class of the package with arguments bound so far."""

    node: Function | ast.Lambda
    environment: Environment = field(compare=False)
    owner: Symbol | None = None
    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()


Value = Text | Constant | Parameter | Mapping | Items | Choice | Closure | Source


def options_of(value: Value) -> Iterator[Value]:
    """Yield the values that a value may be."""
    if isinstance(value, Choice):
        for option in value.options:
            yield from options_of(option)
    else:
        yield value


def choose(values: list[Value]) -> Value:
    """Return the value that is any of these; mappings become one mapping with optional entries."""
    flat: list[Value] = []
    for value in values:
        flat += [option for option in options_of(value) if option not in flat]
    given = [value for value in flat if not is_none(value)]
    if given and all(isinstance(value, Mapping) for value in given):
        merged = given[0]
        for value in given[1:]:
            merged = merge_branches(merged, value)
        if len(given) < len(flat):
            merged = merge_branches(merged, Mapping())
        return merged
    return flat[0] if len(flat) == 1 else Choice(tuple(flat))


def is_none(value: Value) -> bool:
    """Report whether a value is None."""
    return isinstance(value, Constant) and value.value is None


def merge_branches(left: Value, right: Value) -> Value:
    """Merge the values that a name has at the end of two branches."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        entries = {}
        for key in {**left.entries, **right.entries}:
            sides = [side.entries[key] for side in (left, right) if key in side.entries]
            value = sides[0].value if len(sides) == 1 or sides[0] == sides[1] else choose([s.value for s in sides])
            entries[key] = Entry(value, len(sides) == 1 or any(side.optional for side in sides))
        return Mapping(entries, left.rest + tuple(value for value in right.rest if value not in left.rest))
    return choose([left, right])


def overlay(base: Mapping, top: Mapping) -> Mapping:
    """Return a mapping with the entries of both; those of ``top`` replace those of ``base``."""
    entries = dict(base.entries)
    for key, entry in top.entries.items():
        if entry.optional and key in entries:
            entries[key] = Entry(choose([entries[key].value, entry.value]), entries[key].optional)
        else:
            entries[key] = entry
    return Mapping(entries, base.rest + tuple(value for value in top.rest if value not in base.rest))
