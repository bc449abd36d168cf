"""Results of queued work: calls that wait for a type under a request name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from . import type_text
from .classify import Classifier
from .modules import Symbol
from .name_resolution import Scope, iter_calls


def read_futures(classifier: Classifier) -> list[dict[str, str]]:
    """Read the pairs of request_type and result, sorted by name."""
    pairs = set()
    for module, tree in classifier.modules.trees.items():
        if module.rpartition(".")[2].endswith("_test"):
            continue
        for scope, call in iter_calls(module, tree):
            request_type = next((keyword.value for keyword in call.keywords if keyword.arg == "request_type"), None)
            if request_type is None or not call.args:
                continue
            target = classifier.modules.resolve(module, call.args[0])
            if isinstance(target, Symbol) and isinstance(target.node, ast.ClassDef):
                result = type_text.render(classifier, module, call.args[0])
                pairs |= {(name, result) for name in _possible_strings(scope, request_type)}
    return [{"request_type": name, "result": result} for name, result in sorted(pairs)]


def read_protobuf_results(classifier: Classifier) -> list[str]:
    """Read the results that the release decodes from protobuf, from the set that it keeps."""
    names: list[str] = []
    for module in classifier.modules.trees:
        for symbol in classifier.modules.symbols(module):
            if symbol.name == "PROTO_SUPPORTED_TYPES" and isinstance(symbol.node, ast.Set):
                names += [
                    type_text.render(classifier, module, element).removesuffix("#inmem") for element in symbol.node.elts
                ]
    return names


def _possible_strings(scope: Scope, expression: ast.expr | None) -> Iterator[str]:
    """Yield the strings that an expression can have, through variables and conditions."""
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        yield expression.value
    elif isinstance(expression, ast.IfExp):
        yield from _possible_strings(scope, expression.body)
        yield from _possible_strings(scope, expression.orelse)
    elif isinstance(expression, ast.Name):
        value = scope.find_value(expression.id)
        yield from _possible_strings(scope, value if not isinstance(value, ast.Name) else None)
