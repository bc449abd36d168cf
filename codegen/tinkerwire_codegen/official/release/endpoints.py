"""The endpoints of a release: every call of an HTTP method with a path, its request and its response."""

from __future__ import annotations

import ast
import re
from typing import Any, TypeGuard

from . import defaults, type_text
from .classify import Classifier, last_name
from .modules import Symbol
from .name_resolution import Scope, iter_calls

Facts = dict[str, Any]

METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
TYPE_AS_QUERY_NOTE = "the fields of this type, nulls left out"


def read_endpoints(classifier: Classifier) -> Facts:
    """Read the endpoints by method and path; each variable part is {}."""
    endpoints: Facts = {}
    for module, tree in sorted(classifier.modules.trees.items()):
        if module.rpartition(".")[2].endswith("_test"):
            continue
        for scope, call in iter_calls(module, tree):
            place = _method_and_path(call)
            if place:
                _add_endpoint(endpoints, *place, _Call(classifier, scope, call).collect(), f"{module}:{scope.path}")
    return dict(sorted(endpoints.items()))


def _method_and_path(call: ast.Call) -> tuple[str, str] | None:
    """Return method and path of a call such as client.get("/api/...") or _request("GET", "/api/...")."""
    arguments = list(call.args)
    method = last_name(call).lstrip("_").upper()
    if method == "REQUEST" and arguments and isinstance(arguments[0], ast.Constant):
        method = str(arguments.pop(0).value).upper()  # type: ignore[attr-defined]
    path = _path(arguments[0]) if arguments and method in METHODS else None
    return (method, path) if path and path.startswith("/api/") else None


def _path(expression: ast.expr) -> str | None:
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        return expression.value
    if isinstance(expression, ast.JoinedStr):
        parts = [part for part in expression.values if isinstance(part, ast.Constant | ast.FormattedValue)]
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else f"{{{_variable(part.value)}}}" for part in parts
        )
    return None


def _variable(expression: ast.expr) -> str:
    name = last_name(expression) or "value"
    return name.lstrip("_")


def _add_endpoint(endpoints: Facts, method: str, path: str, collect: Facts, site: str) -> None:
    key = f"{method} {re.sub(r'{[^}]*}', '{}', path)}"
    if key in endpoints:
        endpoints[key]["sites"].append(site)
        media_types = [*collect.pop("request_content_types", []), *endpoints[key].get("request_content_types", [])]
        if media_types:
            endpoints[key]["request_content_types"] = list(dict.fromkeys(media_types))
        for name, value in collect.items():
            endpoints[key].setdefault(name, value)
    else:
        endpoints[key] = {"method": method, "path": path, **collect, "sites": [site]}


class _Call:
    """One call of an HTTP method, with its arguments."""

    def __init__(self, classifier: Classifier, scope: Scope, call: ast.Call) -> None:
        self._classifier, self._scope = classifier, scope
        self._keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}

    def collect(self) -> Facts:
        """Collect the facts of the call: query, body and response."""
        collect: Facts = {}
        query = self._query()
        if query:
            collect["query"] = query
        body = self._keywords.get("body") or self._keywords.get("json")
        if body is not None:
            collect |= self._body(body)
        collect["response"] = self._response()
        return collect

    def _text(self, annotation: ast.expr) -> str:
        return type_text.render(self._classifier, self._scope.module, annotation)

    def _response(self) -> str:
        target = self._keywords.get("cast_to")
        if isinstance(target, ast.Call) and last_name(target) == "cast":
            target = target.args[1]
        if target is None:
            target = self._scope.functions[-1].returns if self._scope.functions else None
        return self._text(target) if target is not None else "any"

    def _type_of(self, name: str) -> str:
        """Return the type of a variable, from its annotation or from the model that creates it."""
        annotation = self._scope.find_annotation(name)
        if annotation is not None:
            return self._text(annotation)
        value = self._scope.find_value(name)
        if isinstance(value, ast.Call):
            model = value.func
            if isinstance(model, ast.Attribute) and model.attr in ("model_validate", "parse_obj", "construct"):
                model = model.value
            target = self._classifier.modules.resolve(self._scope.module, model)
            if isinstance(target, Symbol) and isinstance(target.node, ast.ClassDef):
                return self._text(model)
        return "any"

    def _body(self, body: ast.expr) -> Facts:
        """Describe the body: a dumped model, fields in place, or bytes made from a request."""
        if isinstance(body, ast.Name):
            merged: Facts = {}
            for value in self._scope.find_values(body.id):
                # A value that awaits or passes on another body, such as to compress it, does not show its content.
                collect = {} if isinstance(value, ast.Name | ast.Await) else self._body(value)
                media = [*merged.get("request_content_types", []), *collect.pop("request_content_types", [])]
                merged = {**collect, **merged, **(_media_types(*dict.fromkeys(media)) if media else {})}
            if merged:
                return merged
        if isinstance(body, ast.Dict):
            return {"request": "inline", "body_fields": self._inline(body), **_media_types("application/json")}
        if _is_dump(body):
            return self._dumped(body)
        call = body.value if isinstance(body, ast.Await) else body
        if isinstance(call, ast.Call) and last_name(call).endswith("maybe_transform"):
            return {"request": self._text(call.args[1]), **_media_types("application/json")}
        kind = self._content_type()
        return {"request": self._type_of("request"), **(_media_types(kind) if kind else {})}

    def _dumped(self, dump: ast.Call) -> Facts:
        """Describe a model as JSON, from model_dump(request, ...) or request.model_dump(...)."""
        model = dump.args[0] if dump.args else dump.func
        while isinstance(model, ast.Call) and model.args:
            model = model.args[0]
        name = model.value if isinstance(model, ast.Attribute) else model
        options = {
            keyword.arg: keyword.value.value
            for keyword in dump.keywords
            if keyword.arg in ("exclude_unset", "exclude_none") and isinstance(keyword.value, ast.Constant)
        }
        request = self._type_of(name.id).removesuffix("#inmem") if isinstance(name, ast.Name) else "any"
        return {
            "request": request,
            **({"request_dump": options} if options else {}),
            **_media_types("application/json"),
        }

    def _content_type(self) -> str | None:
        """Return the Content-Type that the call sets itself."""
        options = self._keywords.get("options")
        if isinstance(options, ast.Name):
            options = self._scope.find_value(options.id)
        headers = self._keywords.get("extra_headers") or _find_entry(options, ("extra_headers", "headers"))
        media_type = None
        if isinstance(headers, ast.Name):
            media_type = self._scope.find_entries(headers.id).get("Content-Type")
            headers = self._scope.find_value(headers.id)
        media_type = media_type or _find_entry(headers, ("Content-Type",))
        try:
            return (
                str(defaults.evaluate(self._classifier.modules, self._scope.module, media_type)) if media_type else None
            )
        except defaults.UnreadableDefault:
            return None

    def _inline(self, body: ast.Dict) -> Facts:
        fields: Facts = {}
        for key, value in zip(body.keys, body.values, strict=True):
            if isinstance(key, ast.Constant):
                fields[str(key.value)] = self._inline(value) if isinstance(value, ast.Dict) else self._value_type(value)
        return fields

    def _value_type(self, value: ast.expr) -> str:
        if isinstance(value, ast.Name):
            return self._type_of(value.id)
        if isinstance(value, ast.Call) and last_name(value) == "isoformat":
            return "str (iso)"
        if isinstance(value, ast.Constant):
            return "null" if value.value is None else type(value.value).__name__
        return "any"

    def _query(self) -> Facts:
        options = self._keywords.get("options")
        if isinstance(options, ast.Name):
            options = self._scope.find_value(options.id)
        params = (
            self._keywords.get("params") or self._keywords.get("query") or _find_entry(options, ("params", "query"))
        )
        stored: dict[str, ast.expr] = {}
        if isinstance(params, ast.Name):
            stored = self._scope.find_entries(params.id)
            params = self._scope.find_value(params.id)
        if _is_dump(params):
            model = params.func.value if isinstance(params.func, ast.Attribute) else params.func
            name = model.id if isinstance(model, ast.Name) else ""
            return {"*": {"type": self._type_of(name), "note": TYPE_AS_QUERY_NOTE}}
        parameters: Facts = {}
        if isinstance(params, ast.Dict):
            for key, value in zip(params.keys, params.values, strict=True):
                if isinstance(key, ast.Constant):
                    parameters[str(key.value)] = {"type": self._value_type(value), **self._default(value)}
        for name, value in stored.items():
            parameters[name] = {"type": self._value_type(value), "optional": True}
        return parameters

    def _default(self, value: ast.expr) -> Facts:
        default = self._scope.find_default(value.id) if isinstance(value, ast.Name) else None
        if default is None:
            return {}
        try:
            return {"sdk_default": defaults.evaluate(self._classifier.modules, self._scope.module, default)}
        except defaults.UnreadableDefault as error:
            return {"sdk_default": {"python": str(error)}}


def _is_dump(value: ast.expr | None) -> TypeGuard[ast.Call]:
    return isinstance(value, ast.Call) and last_name(value) in ("model_dump", "dict", "to_dict")


def _media_types(*media_types: str) -> Facts:
    return {"request_content_types": list(media_types)}


def _find_entry(options: ast.expr | None, names: tuple[str, ...]) -> ast.expr | None:
    """Return an entry of options written as a mapping or as a call with keywords."""
    if isinstance(options, ast.Dict):
        pairs = zip(options.keys, options.values, strict=True)
        return next((value for key, value in pairs if isinstance(key, ast.Constant) and key.value in names), None)
    if isinstance(options, ast.Call):
        return next((keyword.value for keyword in options.keywords if keyword.arg in names), None)
    return None
