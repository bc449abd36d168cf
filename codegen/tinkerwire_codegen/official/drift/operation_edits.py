"""Edits of the contract that record the differences of an operation."""

from __future__ import annotations

import re
from typing import Any

from ..comparison import Difference
from .contract_source import ContractSource, Json, Place, place_below
from .schema_builder import TODO, SchemaBuilder, to_camel_case

JSON = "application/json"


def name_operation(fact: Json) -> str:
    """Return an operationId of the method and path of an endpoint, such as post_samplers_sampler_id_pause."""
    text = f"{fact['method']}/{fact['path'].removeprefix('/api/v1/')}".lower()
    return re.sub(r"[\W_]+", "_", text, flags=re.ASCII).strip("_")


class OperationEditBuilder:
    """Builder of the new nodes for endpoints, query parameters, bodies, responses and media types."""

    def __init__(self, source: ContractSource, facts: Json) -> None:
        """Initialize with the contract to edit and the facts of the release."""
        self._source, self._version = source, source.version
        self._endpoints: Json = facts["endpoints"]
        self._types: Json = facts["types"]

    def build(self, difference: Difference) -> tuple[str, dict[Place, Any]]:
        """Build the new nodes by place, and name their file; it returns no nodes if a person must decide first."""
        if difference.kind == "endpoint":
            return self._endpoint(difference)
        key, _, parameter = difference.where.partition("?")
        file, place, node = self._source.find_operation(key)
        fact = self._endpoints.get(key, {})
        if difference.kind == "query":
            return file, self._query(place, node, fact, difference)
        if parameter:
            return file, self._changed_query(place, node, fact, parameter)
        if difference.kind == "media type":
            return file, self._media(place, node, difference)
        content = "requestBody" if difference.kind == "request" else "responses/200"
        return file, self._content(place, node, difference, content)

    def _endpoint(self, difference: Difference) -> tuple[str, dict[Place, Any]]:
        if difference.theirs is None:
            file, place, node = self._source.find_operation(difference.ours)
            return file, {place: {**node, "x-until": self._version}}
        fact, builder = self._endpoints[difference.theirs], SchemaBuilder()
        name = name_operation(fact)
        node = {"operationId": name, "tags": ["TODO"], "summary": TODO, "description": TODO, "x-since": self._version}
        parameters = [
            {"name": variable, "in": "path", "required": True, "description": TODO, "schema": {"type": "string"}}
            for variable in re.findall(r"{(\w+)}", fact["path"])
        ]
        parameters += [
            self._parameter(parameter, parameter_fact, _last_step(fact["path"]), builder)
            for parameter, parameter_fact in self._query_facts(fact).items()
        ]
        if parameters:
            node["parameters"] = parameters
        if fact.get("request"):
            schema = self._body(fact, to_camel_case(name), builder)
            content = {kind: {"schema": schema} for kind in fact.get("request_content_types", [JSON])}
            node["requestBody"] = {"required": True, "content": content}
        node["responses"] = self._responses(fact, builder)
        build: dict[Place, Any] = {("paths", fact["path"], fact["method"].lower()): node}
        return "", {**build, **self._components(builder)}

    def _components(self, builder: SchemaBuilder) -> dict[Place, Any]:
        """Return the named schemas that the builder made, by place."""
        marks = {"x-since": self._version, "x-undeclared": True}
        return {("components", "schemas", name): {**marks, **schema} for name, schema in builder.components.items()}

    def _responses(self, fact: Json, builder: SchemaBuilder) -> Json:
        ok_response: Json = {"description": TODO}
        if fact["response"] != "null":
            ok_response["content"] = {JSON: {"schema": builder.build(fact["response"], "TODO")}}
        responses = {"200": ok_response}
        if fact.get("request"):
            responses["422"] = {"$ref": "#/components/responses/Invalid"}
        return {**responses, "default": {"$ref": "#/components/responses/Failed"}}

    def _body(self, fact: Json, name: str, builder: SchemaBuilder) -> Json:
        if fact["request"] != "inline":
            return builder.build(fact["request"], name)
        return self._inline_body(fact["body_fields"], f"{name}Body", builder)

    def _inline_body(self, fields: Json, name: str, builder: SchemaBuilder) -> Json:
        """Build the schema of a body that the call writes itself; its objects are schemas of their own."""
        properties = {}
        for field, text in fields.items():
            inner = f"{name.removesuffix('Body')}{to_camel_case(field)}"
            is_object = isinstance(text, dict)
            schema = self._inline_body(text, inner, builder) if is_object else builder.build(text, inner)
            properties[field] = {"description": TODO, **schema}
        builder.components[name] = {
            "description": TODO,
            "type": "object",
            "additionalProperties": False,
            "required": list(fields),
            "properties": properties,
        }
        return {"$ref": f"#/components/schemas/{name}"}

    def _query_facts(self, fact: Json) -> Json:
        """Return the query parameters by name; a type in the facts is replaced by its fields."""
        parameters = dict(fact.get("query", {}))
        if "*" in parameters:
            fields = self._types[parameters.pop("*")["type"]]["fields"]
            parameters |= {name: {key: field[key] for key in ("type", "required")} for name, field in fields.items()}
        return parameters

    def _parameter(self, name: str, fact: Json, owner: str, builder: SchemaBuilder) -> Json:
        schema = builder.build(fact["type"].removesuffix(" | null"), to_camel_case(f"{owner}_{name}"))
        if "sdk_default" in fact:
            named = builder.components.get(str(schema.get("$ref")).rpartition("/")[2], schema)
            named["default"] = fact["sdk_default"]
        required = {"required": True} if fact.get("required") else {}
        return {"name": name, "in": "query", **required, "description": TODO, "schema": schema}

    def _query(self, place: Place, node: Json, fact: Json, difference: Difference) -> dict[Place, Any]:
        parameters = node.get("parameters", [])
        builder = SchemaBuilder()
        if difference.theirs is not None:
            detail = self._query_facts(fact).get(difference.theirs, {"type": "str"})
            added = self._parameter(difference.theirs, detail, _last_step(place[1]), builder)
            parameters = [*parameters, {**added, "x-since": self._version}]
        else:
            end = {"x-until": self._version}
            parameters = [
                {**parameter, **end} if parameter.get("name") == difference.ours else parameter
                for parameter in parameters
            ]
        return {place_below(place, "parameters"): parameters, **self._components(builder)}

    def _changed_query(self, place: Place, node: Json, fact: Json, name: str) -> dict[Place, Any]:
        builder = SchemaBuilder()
        schema = self._parameter(name, self._query_facts(fact)[name], _last_step(place[1]), builder)["schema"]
        values = self._add_values(place, node, name, builder)
        if values:
            return values
        parameters = []
        for parameter in node.get("parameters", []):
            if parameter.get("name") == name:
                earlier = {key: value for key, value in parameter["schema"].items() if key != "x-history"}
                history = [*parameter["schema"].get("x-history", []), {"until": self._version, "schema": earlier}]
                parameter = {**parameter, "schema": {**schema, "x-history": history}}  # noqa: PLW2901
            parameters.append(parameter)
        return {place_below(place, "parameters"): parameters, **self._components(builder)}

    def _media(self, place: Place, node: Json, difference: Difference) -> dict[Place, Any]:
        content = node.get("requestBody", {}).get("content", {})
        if difference.theirs is None:
            ended = {**content.get(difference.ours, {}), "x-until": self._version}
            return {place_below(place, "requestBody", "content", difference.ours): ended}
        schema = {"type": "string", "format": "binary"}
        return {
            place_below(place, "requestBody", "content", difference.theirs): {
                "x-since": self._version,
                "schema": schema,
            }
        }

    def _content(self, place: Place, node: Json, difference: Difference, part: str) -> dict[Place, Any]:
        """Record another type of a body or response: the earlier one moves into the history of its schema."""
        steps = tuple(part.split("/"))
        holder: Any = node
        for step in steps:
            holder = holder.get(step, {})
        earlier = holder.get("content", {}).get(JSON, {}).get("schema", {})
        if not isinstance(difference.theirs, str) or "$ref" in holder or not earlier:
            return {}
        builder = SchemaBuilder()
        schema = builder.build(difference.theirs, f"{to_camel_case(str(node.get('operationId')))}Body")
        earlier_schema = {key: value for key, value in earlier.items() if key != "x-history"}
        history = [*earlier.get("x-history", []), {"until": self._version, "schema": earlier_schema}]
        return {
            place_below(place, *steps, "content", JSON, "schema"): {**schema, "x-history": history},
            **self._components(builder),
        }

    def _add_values(self, place: Place, node: Json, name: str, builder: SchemaBuilder) -> dict[Place, Any]:
        """Record more values of a parameter whose values have a schema of their own."""
        schemas: list[Json] = [item["schema"] for item in node.get("parameters", []) if item.get("name") == name]
        owner = str(schemas[0].get("$ref")).rpartition("/")[2] if schemas else ""
        _, owner_place, known = self._source.find_schema(owner)
        new = next((schema["enum"] for schema in builder.components.values() if "enum" in schema), None)
        if not known.get("x-undeclared") or not new or not set(known.get("enum", [])) <= set(new):
            return {}
        added = [value for value in new if value not in known["enum"]]
        since = {**known.get("x-enum-since", {}), **dict.fromkeys(added, self._version)}
        changed = {**known, "enum": [*known["enum"], *added], "x-enum-since": since}
        return {owner_place: changed}


def _last_step(path: str) -> str:
    """Return the last step of a path that is not a variable."""
    return next((step for step in reversed(path.split("/")) if not step.startswith("{")), "")
