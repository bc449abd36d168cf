"""Records of a release: the fields of instances of its classes, as their calls give them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

from .attribute_changes import AttributeChanges
from .classify import last_name
from .mappings import store
from .modules import ReleaseModules, Symbol, iter_statements
from .values import Environment, Items, Mapping, Parameter, Source, Text, Value, choose, options_of

MAXIMUM_STEPS = 8
TUPLES = frozenset({"namedtuple", "NamedTuple"})
"""Functions that create a class of records."""
DETAILS = frozenset({"Field", "field"})
Fields = dict[str, Source]


@dataclass(frozen=True)
class _Record:
    """Instance of a class, by the call that creates it; ``fields`` has those of ``names`` whose value is known."""

    owner: Symbol
    call: ast.Call
    environment: Environment
    names: list[str]
    fields: Fields


class RecordReader:
    """Reader of the fields of instances that a call of their class creates."""

    def __init__(self, modules: ReleaseModules, evaluate: Callable[[ast.expr, Environment], Value]) -> None:
        """Initialize with the function that evaluates the values of fields."""
        self._modules, self._evaluate = modules, evaluate
        self._changes = AttributeChanges(modules)

    def find_construction(self, value: Value) -> tuple[ast.Call, Environment] | None:
        """Find the call that creates a value, behind the names that stand for it."""
        for _ in range(MAXIMUM_STEPS):
            if not isinstance(value, Source):
                return None
            if isinstance(value.expression, ast.Call):
                return value.expression, value.environment
            referent = self._modules.resolve(value.module, value.expression)
            if not isinstance(referent, Symbol) or isinstance(referent.node, ast.ClassDef):
                return None
            value = Source(referent.node, Environment(referent.module))
        return None

    def find_field(self, value: Value, name: str) -> Value | None:
        """Return the value of a field of a record; None for another value, or another field."""
        options = [self._find_record(option) for option in options_of(value)]
        found = [self._read(record, name) for record in options if record and name in record.fields]
        if found and len(found) < len(options):
            return Parameter(name)
        return choose(found) if found else None

    def set_field(self, record: Value, name: str, value: Value) -> Value | None:
        """Return a record with another value of a field; None for another value than a record."""
        changed: list[Value] = []
        for option in options_of(record):
            found = self._find_record(option)
            if found is None or name not in found.names:
                return None
            call, environment = found.call, found.environment
            # The new value is bound to a name that no source has, in the place of the argument.
            inner = replace(environment, parent=environment, variables={f"§{name}": value}, annotations={})
            keywords = [keyword for keyword in call.keywords if keyword.arg != name]
            argument = ast.copy_location(ast.Name(f"§{name}", ast.Load()), call)
            new = ast.Call(call.func, call.args, [*keywords, ast.keyword(name, argument)])
            changed.append(Source(ast.copy_location(new, call), inner))
        return choose(changed)

    def to_mapping(self, value: Value) -> Mapping | None:
        """Return the fields of a record as a mapping; None for another value."""
        mappings: list[Value] = []
        for option in options_of(value):
            record = self._find_record(option)
            if record is None or not record.fields:
                return None
            mapping = Mapping()
            for name in record.fields:
                mapping = store(mapping, Text((name,)), self._read(record, name))
            mappings.append(mapping)
        merged = choose(mappings)
        return merged if isinstance(merged, Mapping) else None

    def _read(self, record: _Record, name: str) -> Value:
        """Return the value of a field; a field that may change elsewhere is not understood."""
        if self._changes.may_change(record.owner, name):
            text = f"field of a record, which changes elsewhere: {record.owner.name}.{name}"
            self._modules.problems.add(record.environment.module, record.call, text)
            return Parameter(name)
        source = record.fields[name]
        return self._evaluate(source.expression, source.environment)

    def _find_record(self, value: Value) -> _Record | None:
        found = self.find_construction(value)
        if found is None:
            return None
        call, environment = found
        owner = self._modules.resolve(environment.module, call.func)
        if not isinstance(owner, Symbol):
            return None
        names, defaults = self._list_fields(owner)
        is_plain = not any(isinstance(argument, ast.Starred) for argument in call.args)
        if not names or not is_plain or not all(keyword.arg for keyword in call.keywords):
            return None
        given = dict(zip(names, call.args, strict=False)) | {str(k.arg): k.value for k in call.keywords}
        fields = {name: Source(expression, environment) for name, expression in given.items()}
        known = {name: fields.get(name) or defaults[name] for name in names if name in fields or name in defaults}
        return _Record(owner, call, environment, names, known)

    def _list_fields(self, owner: Symbol, seen: frozenset[str] = frozenset()) -> tuple[list[str], Fields]:
        """List the fields of a class in the order of its arguments, and their defaults."""
        if isinstance(owner.node, ast.Call):
            return self._list_elements(owner, owner.node), {}
        if not isinstance(owner.node, ast.ClassDef) or owner.name in seen:
            return [], {}
        names: list[str] = []
        defaults: Fields = {}
        for base in owner.node.bases:
            target = self._modules.resolve(owner.module, base)
            if isinstance(target, Symbol):
                more, more_defaults = self._list_fields(target, seen | {owner.name})
                names += more
                defaults |= more_defaults
        for statement in iter_statements(owner.node.body):
            if isinstance(statement, ast.FunctionDef) and statement.name in ("__init__", "__new__", "__post_init__"):
                return [], {}
            if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
                continue
            name, value = statement.target.id, statement.value
            if "ClassVar" in ast.unparse(statement.annotation):
                continue
            names += [] if name in names else [name]
            if isinstance(value, ast.Call) and last_name(value) in DETAILS:
                value = next((k.value for k in value.keywords if k.arg == "default"), None)
            if value is not None:
                defaults[name] = Source(value, Environment(owner.module, owner.name, owner))
        return names, defaults

    def _list_elements(self, owner: Symbol, call: ast.Call) -> list[str]:
        """List the fields of namedtuple("Page", "limit offset") and of its other forms."""
        if last_name(call) not in TUPLES or len(call.args) < 2:
            return []
        fields = self._evaluate(call.args[1], Environment(owner.module))
        if isinstance(fields, Text):
            return (fields.constant or "").replace(",", " ").split()
        items = fields.values if isinstance(fields, Items) else ()
        texts = [item.values[0] if isinstance(item, Items) and item.values else item for item in items]
        return [text.constant or "" for text in texts if isinstance(text, Text)]
