"""How differences of an operation would be written into the contract."""

from __future__ import annotations

import re
from typing import Any

from ..comparison import Difference
from .contract_source import ContractSource, Json, Place, place_below
from .schema_builder import TODO, SchemaBuilder, camel

JSON = "application/json"


class OperationEditBuilder:
    """The new nodes for endpoints, query parameters, bodies, answers and media types."""

    def __init__(self, source: ContractSource, facts: Json) -> None:
        self._source, self._version = source, source.version
        self._endpoints: Json = facts["endpoints"]

    def nodes(self, difference: Difference) -> tuple[str, dict[Place, Any]]:
        """File and new nodes by place; none when a person has to think first."""
        if difference.kind == "endpoint":
            return self._endpoint(difference)
        key, _, parameter = difference.where.partition("?")
        file, place, node = self._source.operation(key)
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
            file, place, node = self._source.operation(difference.ours)
            return file, {place: {**node, "x-until": self._version}}
        fact, builder = self._endpoints[difference.theirs], SchemaBuilder()
        name = re.sub(r"\W+", "_", f"{fact['method'].lower()}{fact['path'].removeprefix('/api/v1')}").strip("_")
        node = {"operationId": name, "tags": ["TODO"], "summary": "TODO.", "x-since": self._version}
        parameters = [
            {"name": variable, "in": "path", "required": True, "description": TODO, "schema": {"type": "string"}}
            for variable in re.findall(r"{(\w+)}", fact["path"])
        ]
        parameters += [self._parameter(name, each, name, builder) for name, each in fact.get("query", {}).items()]
        if parameters:
            node["parameters"] = parameters
        if fact.get("request"):
            schema = self._body(fact, camel(name), builder)
            content = {kind: {"schema": schema} for kind in fact.get("request_content_types", [JSON])}
            node["requestBody"] = {"required": True, "content": content}
        node["responses"] = self._responses(fact, builder)
        nodes: dict[Place, Any] = {("paths", fact["path"], fact["method"].lower()): node}
        for schema_name, schema in builder.components.items():
            nodes[("components", "schemas", schema_name)] = {"x-since": self._version, "x-undeclared": True, **schema}
        return "", nodes

    def _responses(self, fact: Json, builder: SchemaBuilder) -> Json:
        done: Json = {"description": TODO}
        if fact["response"] != "null":
            done["content"] = {JSON: {"schema": builder.schema(fact["response"], "TODO")}}
        found = {"200": done}
        if fact.get("request"):
            found["422"] = {"$ref": "#/components/responses/Invalid"}
        return {**found, "default": {"$ref": "#/components/responses/Failed"}}

    def _body(self, fact: Json, name: str, builder: SchemaBuilder) -> Json:
        if fact["request"] != "inline":
            return builder.schema(fact["request"], name)
        fields = {field: text for field, text in fact["body_fields"].items() if isinstance(text, str)}
        properties = {n: {"description": TODO, **builder.schema(t, f"{name}{camel(n)}")} for n, t in fields.items()}
        builder.components[f"{name}Body"] = {
            "description": TODO,
            "type": "object",
            "additionalProperties": False,
            "required": list(fields),
            "properties": properties,
        }
        return {"$ref": f"#/components/schemas/{name}Body"}

    def _parameter(self, name: str, fact: Json, owner: str, builder: SchemaBuilder) -> Json:
        schema = builder.schema(fact["type"].removesuffix(" | null"), camel(f"{owner}_{name}"))
        if "sdk_default" in fact:
            schema["default"] = fact["sdk_default"]
        return {"name": name, "in": "query", "description": TODO, "schema": schema}

    def _query(self, place: Place, node: Json, fact: Json, difference: Difference) -> dict[Place, Any]:
        parameters = node.get("parameters", [])
        builder = SchemaBuilder()
        if difference.theirs is not None:
            detail = fact.get("query", {}).get(difference.theirs, {"type": "str"})
            added = self._parameter(difference.theirs, detail, place[1].rpartition("/")[2], builder)
            parameters = [*parameters, {**added, "x-since": self._version}]
        else:
            end = {"x-until": self._version}
            parameters = [{**each, **end} if each.get("name") == difference.ours else each for each in parameters]
        return {place_below(place, "parameters"): parameters}

    def _changed_query(self, place: Place, node: Json, fact: Json, name: str) -> dict[Place, Any]:
        fresh = self._parameter(name, fact["query"][name], place[1].rpartition("/")[2], SchemaBuilder())["schema"]
        parameters = []
        for each in node.get("parameters", []):
            if each.get("name") == name:
                earlier = {key: value for key, value in each["schema"].items() if key != "x-history"}
                history = [*each["schema"].get("x-history", []), {"until": self._version, "schema": earlier}]
                each = {**each, "schema": {**fresh, "x-history": history}}  # noqa: PLW2901
            parameters.append(each)
        return {place_below(place, "parameters"): parameters}

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
        """A body or answer of another type: the earlier one goes into the history of its schema."""
        steps = tuple(part.split("/"))
        holder: Any = node
        for step in steps:
            holder = holder.get(step, {})
        earlier = holder.get("content", {}).get(JSON, {}).get("schema", {})
        if not isinstance(difference.theirs, str) or "$ref" in holder or not earlier:
            return {}
        fresh = SchemaBuilder().schema(difference.theirs, "TODO")
        kept = {key: value for key, value in earlier.items() if key != "x-history"}
        history = [*earlier.get("x-history", []), {"until": self._version, "schema": kept}]
        return {place_below(place, *steps, "content", JSON, "schema"): {**fresh, "x-history": history}}
