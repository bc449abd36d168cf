"""Results of queued work: calls that wait for a type under a request name."""

from __future__ import annotations

import ast

from . import type_text
from .calls import is_read
from .classify import Classifier
from .evaluation import Evaluator
from .execution import Executor
from .modules import Symbol
from .values import Environment, Text, options_of

REQUEST_TYPE = "request_type"


def read_futures(classifier: Classifier, evaluator: Evaluator) -> list[dict[str, str]]:
    """Read the pairs of request_type and result, sorted by name."""
    pairs: set[tuple[str, str]] = set()

    def visit(call: ast.Call, environment: Environment) -> None:
        request_type = next((keyword.value for keyword in call.keywords if keyword.arg == REQUEST_TYPE), None)
        if request_type is None or not call.args:
            return
        target = classifier.modules.resolve(environment.module, call.args[0])
        if isinstance(target, Symbol) and isinstance(target.node, ast.ClassDef):
            result = type_text.render(classifier, environment.module, call.args[0])
            for option in options_of(evaluator.evaluate(request_type, environment)):
                if isinstance(option, Text) and option.constant is not None:
                    pairs.add((option.constant, result))

    executor = Executor(evaluator, visit)
    for module, tree in classifier.modules.trees.items():
        if is_read(module) and any(isinstance(n, ast.keyword) and n.arg == REQUEST_TYPE for n in ast.walk(tree)):
            executor.run_module(module, tree)
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
