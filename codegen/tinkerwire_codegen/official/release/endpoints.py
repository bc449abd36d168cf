"""The endpoints of a release: the path, query, body, response and timeout of each call that sends a request."""

from __future__ import annotations

import ast
import re
from typing import Any

from . import type_text
from .calls import RequestCall
from .classify import Classifier, last_name
from .constants import to_json
from .evaluation import Evaluator
from .mappings import as_mapping
from .modules import Symbol
from .problems import is_unread
from .values import (
    Constant,
    Environment,
    Mapping,
    Parameter,
    Source,
    Text,
    Value,
    is_none,
    options_of,
)

Facts = dict[str, Any]

TYPE_AS_QUERY_NOTE = "the fields of this type, nulls left out"
JSON = "application/json"
DUMPS = ("model_dump", "dict", "to_dict")
DUMP_OPTIONS = ("exclude_unset", "exclude_none")


def read_endpoints(classifier: Classifier, calls: list[RequestCall], evaluator: Evaluator) -> Facts:
    """Read the endpoints by method and path; each variable part is {}."""
    endpoints: Facts = {}
    for call in calls:
        path = call.path.render()
        facts = EndpointReader(classifier, evaluator, call).read()
        _add_endpoint(endpoints, call.method, path, facts, f"{call.environment.module}:{call.environment.path}")
    return dict(sorted(endpoints.items()))


def endpoint_key(call: RequestCall) -> str:
    """Return method and path of a call, with {} for each variable."""
    return f"{call.method} {re.sub(r'{[^}]*}', '{}', call.path.render().partition('?')[0])}"


def _add_endpoint(endpoints: Facts, method: str, path: str, facts: Facts, site: str) -> None:
    path, _, query = path.partition("?")
    for part in filter(None, re.split("[?&]", query)):
        name, _, value = part.partition("=")
        facts.setdefault("query", {})[name] = {"type": "any" if value.startswith("{") else "str"}
    key = f"{method} {re.sub(r'{[^}]*}', '{}', path)}"
    if key in endpoints:
        endpoints[key]["sites"].append(site)
        media_types = [*facts.pop("request_content_types", []), *endpoints[key].get("request_content_types", [])]
        if media_types:
            endpoints[key]["request_content_types"] = list(dict.fromkeys(media_types))
        for name, value in facts.items():
            if name == "query":
                endpoints[key]["query"] = {**value, **endpoints[key].get("query", {})}
            endpoints[key].setdefault(name, value)
    else:
        endpoints[key] = {"method": method, "path": path, **facts, "sites": [site]}


class EndpointReader:
    """Reader of the facts of one call."""

    def __init__(self, classifier: Classifier, evaluator: Evaluator, call: RequestCall) -> None:
        """Initialize with the call."""
        self._classifier, self._evaluator, self._call = classifier, evaluator, call
        self._options = as_mapping(call.arguments.get("options", Constant(None)))
        self._is_query_unread = False

    def read(self) -> Facts:
        """Read query, body and response."""
        facts: Facts = {}
        query = self._query()
        if query:
            facts["query"] = query
        if self._is_query_unread:
            facts["query_unread"] = True
        body = next(
            (
                self._call.arguments[key]
                for key in ("body", "json", "json_data", "content", "data")
                if key in self._call.arguments
            ),
            None,
        )
        if body is not None and not is_none(body):
            facts |= self._body(body)
        facts["response"] = self._response()
        return facts

    def _text(self, source: Source) -> str:
        return type_text.render(self._classifier, source.module, source.expression, of_field=False)

    def _response(self) -> str:
        target = self._call.arguments.get("cast_to")
        if isinstance(target, Parameter) and target.annotation and not target.default:
            target = None
        if isinstance(target, Source):
            return self._text(target)
        if target is not None and is_none(target):
            return "null"
        here: Environment | None = self._call.environment
        while here is not None:
            if here.function is not None:
                returns = here.function.returns
                return self._text(Source(returns, here)) if returns is not None else "any"
            here = here.parent
        return "any"

    def _type_of(self, value: Value, name: str = "") -> str:
        """Return the type of a value: its annotation, the model that creates it, or that of a constant."""
        if name:
            annotation = self._call.environment.find_annotation(name)
            if annotation is not None:
                return self._text(annotation)
        if isinstance(value, Parameter):
            return self._text(value.annotation) if value.annotation else "any"
        if isinstance(value, Text):
            return "str"
        if isinstance(value, Constant):
            return "null" if value.value is None else type(value.value).__name__
        if isinstance(value, Source) and isinstance(value.expression, ast.Call):
            return self._created_type(value.expression, value.environment)
        if isinstance(value, Source) and isinstance(value.expression, ast.Name):
            annotation = value.environment.find_annotation(value.expression.id)
            return self._text(annotation) if annotation else "any"
        types = (
            {self._type_of(option) for option in options_of(value)}
            if not isinstance(value, Source | Mapping)
            else set()
        )
        return types.pop() if len(types - {"null"}) == 1 and len(types) == 1 else "any"

    def _created_type(self, call: ast.Call, environment: Environment) -> str:
        if last_name(call) == "isoformat":
            return "str (iso)"
        if last_name(call) in ("str", "int", "float", "bool") and isinstance(call.func, ast.Name):
            return last_name(call)
        model = call.func
        if isinstance(model, ast.Attribute) and model.attr in ("model_validate", "parse_obj", "construct"):
            model = model.value
        target = self._classifier.modules.resolve(environment.module, model)
        if isinstance(target, Symbol) and isinstance(target.node, ast.ClassDef):
            return self._text(Source(model, environment))
        return "any"

    def _body(self, body: Value) -> Facts:
        """Describe the body: a dumped model, fields in place, or bytes made from a request."""
        merged: Facts = {}
        for option in options_of(body):
            # A value that is made from another body, such as by compressing it, does not show its content.
            facts = {} if is_none(option) else self._one_body(option)
            media = [*merged.get("request_content_types", []), *facts.pop("request_content_types", [])]
            merged = {**facts, **merged, **({"request_content_types": list(dict.fromkeys(media))} if media else {})}
        return merged

    def _one_body(self, body: Value) -> Facts:
        if isinstance(body, Mapping):
            fields = {name: self._field(entry.value) for name, entry in body.entries.items()}
            unread = [value for value in body.rest if isinstance(value, Source)]
            for value in unread:
                self._report(value, "body")
            return {
                "request": "inline",
                **({"body_unread": True} if unread else {}),
                "body_fields": fields,
                "request_content_types": [JSON],
            }
        if isinstance(body, Source) and isinstance(body.expression, ast.Call):
            call = body.expression
            if last_name(call) in DUMPS:
                return self._dumped(call, body.environment)
            if last_name(call).endswith("maybe_transform") and len(call.args) > 1:
                text = self._text(Source(call.args[1], body.environment))
                return {"request": text, "request_content_types": [JSON]}
        if isinstance(body, Parameter) and body.annotation and not isinstance(body.annotation.expression, ast.Constant):
            text = self._text(body.annotation)
            if text not in ("bytes", "any"):
                return {"request": text, "request_content_types": [JSON]}
        kind = self._content_type()
        request = self._call.environment.find("request")
        return {
            "request": self._type_of(request, "request") if request is not None else "any",
            **({"request_content_types": [kind]} if kind else {}),
        }

    def _dumped(self, dump: ast.Call, environment: Environment) -> Facts:
        """Describe a model as JSON, from model_dump(request, ...) or request.model_dump(...)."""
        model: ast.expr = dump.args[0] if dump.args else getattr(dump.func, "value", dump.func)
        while isinstance(model, ast.Call) and model.args:
            model = model.args[0]
        mode = read_dump_options(self._evaluator, dump, environment)
        options = {key: value for key, value in mode.items() if key in DUMP_OPTIONS}
        value = self._evaluator.evaluate(model, environment)
        annotation = environment.find_annotation(model.id) if isinstance(model, ast.Name) else None
        request = self._text(annotation) if annotation else self._type_of(value)
        return {
            "request": request.removesuffix("#inmem"),
            **({"request_dump": options} if options else {}),
            "request_content_types": [JSON],
        }

    def _content_type(self) -> str | None:
        """Return the Content-Type that the call sets itself."""
        for name, entry in self.headers().entries.items():
            if name.lower() == "content-type":
                return next((o.constant for o in options_of(entry.value) if isinstance(o, Text)), None)
        return None

    def headers(self) -> Mapping:
        """Return the headers that the call sets itself."""
        headers = Mapping()
        for name in ("headers", "extra_headers"):
            for holder in (self._call.arguments, {k: e.value for k, e in self._options.entries.items()}):
                if name in holder:
                    found = as_mapping(holder[name])
                    headers = Mapping({**headers.entries, **found.entries}, headers.rest + found.rest)
        return headers

    def timeouts(self) -> list[Value]:
        """Return the timeouts that the call sets itself."""
        found = [self._call.arguments.get("timeout")]
        found += [entry.value for name, entry in self._options.entries.items() if name == "timeout"]
        return [option for value in found if value is not None for option in options_of(value)]

    def _field(self, value: Value) -> Any:
        """Return the type of a field of a body that is written in place."""
        if isinstance(value, Mapping) and not value.rest:
            return {name: self._field(entry.value) for name, entry in value.entries.items()}
        return self._type_of(value)

    def _query(self) -> Facts:
        parameters: Facts = {}
        for name in ("params", "query", "extra_query"):
            for holder in (self._call.arguments, {k: e.value for k, e in self._options.entries.items()}):
                if name in holder:
                    parameters |= self._parameters(as_mapping(holder[name]))
        return parameters

    def _parameters(self, params: Mapping) -> Facts:
        parameters: Facts = {}
        for value in params.rest:
            call = value.expression if isinstance(value, Source) else None
            if isinstance(value, Source) and isinstance(call, ast.Call) and last_name(call) in DUMPS:
                text = self._dumped(call, value.environment)["request"]
                parameters["*"] = {"type": text, "note": TYPE_AS_QUERY_NOTE}
                continue
            if isinstance(value, Parameter) and (value.is_rest or value.name.startswith("extra_")):
                continue  # The user of the SDK gives it.
            self._report(value, "query")
            self._is_query_unread = True
        for name, entry in params.entries.items():
            optional = {"optional": True} if entry.optional else {}
            default = self._default(entry.value)
            if optional and default == {"sdk_default": None}:
                default = {}  # None is the absence of the parameter.
            parameters[name] = {"type": self._type_of(entry.value), **default, **optional}
        return parameters

    def _report(self, value: Value, part: str) -> None:
        node: ast.AST = value.expression if isinstance(value, Source) else self._call.node
        module = value.module if isinstance(value, Source) else self._call.environment.module
        text = ast.unparse(value.expression) if isinstance(value, Source) else getattr(value, "name", part)
        self._classifier.modules.problems.add(module, node, f"{part} of {endpoint_key(self._call)}: {text}")

    def _default(self, value: Value) -> Facts:
        source = value.default if isinstance(value, Parameter) else None
        if source is None:
            return {}
        default = self._evaluator.evaluate(source.expression, source.environment)
        return {"sdk_default": to_json(self._classifier.modules, default)}


def read_dump_options(evaluator: Evaluator, dump: ast.Call, environment: Environment) -> Facts:
    """Return the keywords of a dump that are not arguments of the function around it, by name."""
    options: Facts = {}
    for name, value in evaluator.keywords(dump, environment).entries.items():
        for option in options_of(value.value):
            if not isinstance(option, Parameter):
                options[name] = to_json(evaluator.modules, option)
                if is_unread(options[name]):
                    evaluator.modules.problems.add(environment.module, dump, f"option of a dump: {name}")
    return options
