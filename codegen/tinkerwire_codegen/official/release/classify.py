"""Names of a release that are types of the wire, and their kinds."""

from __future__ import annotations

import ast

from .modules import ExternalName, ReleaseModules, Symbol
from .type_syntax import union_members, unwrap

MODELS = frozenset({"BaseModel", "GenericModel", "RootModel", "BaseSettings"})
TYPE_CALLS = frozenset({"NewType", "TypeAliasType"})
"""Functions that create a type from the type that is their second argument."""
ENUMS = frozenset({"Enum", "StrEnum", "IntEnum", "IntFlag", "Flag"})


class Classifier:
    """Classifier of symbols: pydantic, typed_dict, dataclass, enum, value (an alias or union), or other."""

    def __init__(self, modules: ReleaseModules) -> None:
        """Initialize with the modules of a release."""
        self.modules = modules
        self._known: dict[Symbol, str] = {}
        self._exported = {
            symbol
            for module in modules.trees
            if is_in_types(module) and modules.is_package(module)
            for symbol in modules.imported_symbols(module)
        }

    def is_wire_place(self, symbol: Symbol) -> bool:
        """Report whether a definition is in the package's ``types``, or exported from there."""
        return is_in_types(symbol.module) or symbol in self._exported

    def classify(self, symbol: Symbol) -> str:
        """Return the kind of a symbol.

        It decides classes by their bases. Aliases count in the package's ``types``, unions of models anywhere.
        """
        if symbol not in self._known:
            self._known[symbol] = "other"  # ends the recursion of a class that is its own base
            self._known[symbol] = self._classify(symbol)
        return self._known[symbol]

    def bases(self, symbol: Symbol) -> list[Symbol]:
        """Return the direct base classes that the package defines."""
        if not isinstance(symbol.node, ast.ClassDef):
            return []
        targets = (self.modules.resolve(symbol.module, strip_subscript(base)) for base in symbol.node.bases)
        return [base for base in targets if isinstance(base, Symbol)]

    def _classify(self, symbol: Symbol) -> str:
        node = symbol.node
        if not isinstance(node, ast.ClassDef):
            is_named = self.is_wire_place(symbol) and not symbol.name.startswith("_")
            is_type = not _is_plain_value(node) if is_named else self._is_union_of_models(symbol)
            return "value" if is_type else "other"
        if any(last_name(decorator) == "dataclass" for decorator in node.decorator_list):
            return "dataclass"
        for base in node.bases:
            target = self.modules.resolve(symbol.module, strip_subscript(base))
            if isinstance(target, Symbol):
                kind = self.classify(target)
            else:
                name = target.last if isinstance(target, ExternalName) else ""
                kind = "pydantic" if name in MODELS else "enum" if name in ENUMS else "other"
                kind = "typed_dict" if name == "TypedDict" else kind
            if kind != "other":
                return kind
        return "other"

    def _is_union_of_models(self, symbol: Symbol) -> bool:
        assert isinstance(symbol.node, ast.expr)
        members = union_members(self.modules, symbol.module, symbol.node)
        targets = [
            self.modules.resolve(symbol.module, unwrap(self.modules, symbol.module, member)) for member in members
        ]
        return bool(targets) and all(
            isinstance(member, Symbol) and self.classify(member) == "pydantic" for member in targets
        )


def is_in_types(module: str) -> bool:
    """Report whether a module is in the package's folder of wire types."""
    return ".types." in f"{module}."


def strip_subscript(expression: ast.expr) -> ast.expr:
    """Remove the brackets of an expression: Generic for Generic[T]."""
    return expression.value if isinstance(expression, ast.Subscript) else expression


def last_name(expression: ast.expr) -> str:
    """Return the last part of a name, called or not: dataclass for @dataclasses.dataclass(frozen=True)."""
    if isinstance(expression, ast.Call):
        expression = expression.func
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""


def _is_plain_value(node: ast.expr) -> bool:
    """Report whether an assigned expression is a value rather than a type."""
    shapes = (
        ast.Constant | ast.List | ast.Dict | ast.Set | ast.Tuple | ast.Call | ast.JoinedStr | ast.Compare | ast.UnaryOp
    )
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.BitOr)
    return isinstance(node, shapes) and last_name(node) not in TYPE_CALLS
