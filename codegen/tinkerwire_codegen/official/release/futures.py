"""Which result each kind of queued work has: calls that wait for a type under a name of request."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from . import type_text
from .classify import Classifier
from .modules import Symbol
from .name_resolution import Scope, calls


def read_futures(classifier: Classifier) -> list[dict[str, str]]:
    """Pairs of request_type and result, in order of their names."""
    found = set()
    for module, tree in classifier.modules.trees.items():
        if module.rpartition(".")[2].endswith("_test"):
            continue
        for scope, call in calls(module, tree):
            named = next((keyword.value for keyword in call.keywords if keyword.arg == "request_type"), None)
            if named is None or not call.args:
                continue
            target = classifier.modules.resolve(module, call.args[0])
            if isinstance(target, Symbol) and isinstance(target.node, ast.ClassDef):
                result = type_text.render(classifier, module, call.args[0])
                found |= {(name, result) for name in _texts(scope, named)}
    return [{"request_type": name, "result": result} for name, result in sorted(found)]


def read_protobuf_results(classifier: Classifier) -> list[str]:
    """The results that the release reads as protobuf, from the set of them that it keeps."""
    found: list[str] = []
    for module in classifier.modules.trees:
        for symbol in classifier.modules.symbols(module):
            if symbol.name == "PROTO_SUPPORTED_TYPES" and isinstance(symbol.node, ast.Set):
                found += [
                    type_text.render(classifier, module, each).removesuffix("#inmem") for each in symbol.node.elts
                ]
    return found


def _texts(scope: Scope, expression: ast.expr | None) -> Iterator[str]:
    """The texts that an expression can be, through variables and conditions."""
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        yield expression.value
    elif isinstance(expression, ast.IfExp):
        yield from _texts(scope, expression.body)
        yield from _texts(scope, expression.orelse)
    elif isinstance(expression, ast.Name):
        value = scope.find_value(expression.id)
        yield from _texts(scope, value if not isinstance(value, ast.Name) else None)
