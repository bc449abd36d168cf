"""Behaviour of a release on the wire that types and endpoints do not show, by kind and place.

Each fact is plain JSON: headers, timeouts, modes of dumps, constraints, serializers, settings of models, and the
packages and options of protobuf. A part that is not understood is an object with the key ``python`` and its source.
"""

from __future__ import annotations

import ast
from typing import Any

from .calls import CallReader, RequestCall
from .classify import Classifier, last_name
from .constants import to_json
from .endpoints import DUMPS, EndpointReader, endpoint_key, read_dump_options
from .evaluation import Evaluator
from .headers import HeaderReader, render_value
from .model_behaviour import read_model_behaviour
from .modules import Symbol
from .problems import UNREAD, is_unread
from .protobuf import read_proto_options
from .values import Constant, Environment, Mapping, Parameter, Source, Value, is_none, options_of

Facts = dict[str, dict[str, Any]]

ALL_REQUESTS = "all requests"
INTERNAL = ("____", "x-stainless-raw-response")
"""Headers that the client keeps to itself."""
DEFAULT_TIMEOUTS = ("DEFAULT_TIMEOUT",)


def read_behaviour(classifier: Classifier, reader: CallReader, calls: list[RequestCall], evaluator: Evaluator) -> Facts:
    """Read all behaviour of a release."""
    behaviour: Facts = {}
    _read_headers(classifier, evaluator, behaviour)
    _read_calls(classifier, reader, calls, evaluator, behaviour)
    _read_client(classifier, evaluator, behaviour)
    for facts in (read_model_behaviour(classifier), read_proto_options(classifier.modules.trees)):
        for kind, places in facts.items():
            behaviour.setdefault(kind, {}).update(places)
    return {kind: dict(sorted(places.items())) for kind, places in sorted(behaviour.items()) if places}


def _read_headers(classifier: Classifier, evaluator: Evaluator, behaviour: Facts) -> None:
    headers = HeaderReader(classifier.modules, evaluator)
    headers.read()
    behaviour["request header"] = {
        name: sorted(values) for name, values in headers.sent.items() if not name.startswith(INTERNAL)
    }
    behaviour["response header"] = dict.fromkeys(headers.received, "read")


def _read_calls(
    classifier: Classifier, reader: CallReader, calls: list[RequestCall], evaluator: Evaluator, behaviour: Facts
) -> None:
    """Read timeouts, headers and modes of dumps of each endpoint, also those that callers of a method pass on."""
    timeouts: dict[str, list[Any]] = {}
    headers: dict[str, set[str]] = {}
    dumps: dict[str, Any] = {}
    by_function: dict[str, list[tuple[str, set[str]]]] = {}
    for call in calls:
        key, endpoint = endpoint_key(call), EndpointReader(classifier, evaluator, call)
        timeouts.setdefault(key, []).extend(_render_timeouts(classifier, key, endpoint.timeouts()))
        headers.setdefault(key, set()).update(_render_headers(endpoint.headers()))
        options = _dump_options(evaluator, call)
        if options:
            dumps.setdefault(key, options)
        function = call.environment.function
        if function is not None:
            accepted = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
            by_function.setdefault(function.name, []).append((key, accepted))
    for name, passed in reader.forwarded:
        for key, accepted in by_function.get(name, ()):
            if "timeout" in passed and "timeout" in accepted:
                timeouts[key].extend(_render_timeouts(classifier, key, list(options_of(passed["timeout"]))))
            if "extra_headers" in passed and "extra_headers" in accepted:
                for option in options_of(passed["extra_headers"]):
                    headers[key].update(_render_headers(option) if isinstance(option, Mapping) else ())
    behaviour["timeout"] = {key: _merge_timeouts(values) for key, values in timeouts.items() if values}
    behaviour["header of a call"] = {key: sorted(values) for key, values in headers.items() if values}
    behaviour["dump"] = dumps


def _render_headers(headers: Mapping) -> set[str]:
    return {
        f"{name.lower()}: {render_value(option)}"
        for name, entry in headers.entries.items()
        for option in options_of(entry.value)
        if not is_none(option)
    }


def _dump_options(evaluator: Evaluator, call: RequestCall) -> dict[str, Any]:
    """Return the options of the dump that makes the body of a call."""
    for part in ("body", "json", "json_data"):
        for value in options_of(call.arguments[part]) if part in call.arguments else ():
            dump = value.expression if isinstance(value, Source) else None
            if isinstance(value, Source) and isinstance(dump, ast.Call) and last_name(dump) in DUMPS:
                options = read_dump_options(evaluator, dump, value.environment)
                return {name: option for name, option in options.items() if option not in (False, None)}
    return {}


def _render_timeouts(classifier: Classifier, key: str, values: list[Value]) -> list[Any]:
    """Render timeouts in seconds; arguments of the SDK's user are left out."""
    texts: list[Any] = []
    for value in values:
        is_users = isinstance(value, Parameter) or is_none(value)
        is_default = isinstance(value, Source) and last_name(value.expression) in ("NOT_GIVEN", "timeout")
        if not is_users and not is_default:
            seconds = to_json(classifier.modules, value)
            if isinstance(value, Source) and not isinstance(seconds, int | float):
                text = f"timeout of {key}: {ast.unparse(value.expression)}"
                classifier.modules.problems.add(value.module, value.expression, text)
                texts.append({UNREAD: ast.unparse(value.expression)})
            else:
                texts.append(_render_seconds(seconds))
    return texts


def _merge_timeouts(values: list[Any]) -> Any:
    """Return the timeouts of a call in order, or the first that is not understood."""
    return next(filter(is_unread, values), None) or sorted(set(values))


def _render_seconds(value: Any) -> str:
    return f"{float(value):g}" if isinstance(value, int | float) else str(value)


def _read_client(classifier: Classifier, evaluator: Evaluator, behaviour: Facts) -> None:
    """Read the default timeout, and the format of lists in queries."""
    modules = classifier.modules
    for module in sorted(modules.trees):
        for name, referent in modules.exports(module):
            if name in DEFAULT_TIMEOUTS and isinstance(referent, Symbol) and isinstance(referent.node, ast.expr):
                environment = Environment(referent.module)
                value = evaluator.evaluate(referent.node, environment)
                if isinstance(value, Source) and isinstance(value.expression, ast.Call):
                    call = value.expression
                    seconds = {
                        str(k): e.value
                        for k, e in evaluator.keywords(_only_keywords(call), environment).entries.items()
                    }
                    if call.args:
                        seconds["timeout"] = evaluator.evaluate(call.args[0], environment)
                    behaviour["timeout"][ALL_REQUESTS] = {
                        part: text
                        for part, value in seconds.items()
                        for text in _render_timeouts(classifier, ALL_REQUESTS, [value])
                    }
                elif isinstance(value, Constant):
                    behaviour["timeout"][ALL_REQUESTS] = {"timeout": _render_seconds(value.value)}
        for node in ast.walk(modules.trees[module]):
            if isinstance(node, ast.Call) and last_name(node) == "Querystring" and node.keywords:
                options = evaluator.keywords(_only_keywords(node), Environment(module)).entries
                texts = {name: str(to_json(modules, entry.value)) for name, entry in options.items()}
                behaviour["query format"] = {ALL_REQUESTS: texts}


def _only_keywords(call: ast.Call) -> ast.Call:
    return ast.Call(call.func, [], call.keywords)
