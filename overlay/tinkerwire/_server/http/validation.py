"""Requests against the contract of the wire version that is served: strict, with reasons."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema_rs
import orjson

from tinkerwire._server.http import validation_errors
from tinkerwire._server.http.content_encoding import EVERYWHERE, ZSTD, decoded
from tinkerwire._server.http.openapi import Json, resolve
from tinkerwire._server.http.protobuf import decode_request
from tinkerwire._server.http.responses import ErrorDetail, HttpError
from tinkerwire_base.call import JSON, PROTOBUF, Operation
from tinkerwire_base.conversion.converter import Converter

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_PLACE = re.compile(r" @ \w+([\w.\[\]']*)$")
_STEP = re.compile(r"\w+")


class Validator:
    """Checks bodies and query parameters of the operations in one contract; validators are built when needed."""

    def __init__(self, document: Json) -> None:
        self._document = document
        self._version = document["info"]["version"]
        self._operations: dict[str, Json] = {
            operation["operationId"]: operation for item in document["paths"].values() for operation in item.values()
        }
        self._converter = Converter()
        self._bodies: dict[str, jsonschema_rs.Validator] = {}
        self._queries: dict[str, jsonschema_rs.Validator] = {}

    def body(self, operation: Operation, content: bytes | None, headers: Mapping[str, str]) -> Any:
        """The request model, None for operations without a body.

        Args:
            operation: what is asked for.
            content: the body as it came.
            headers: by lower-case name.

        Raises:
            Refusal: 415 for another media type or encoding, 400 for a broken encoding, 422 for a body that does not
                fit.
        """
        encoding = headers.get("content-encoding", "").strip().lower()
        if "requestBody" not in self._operations[operation.name]:
            return None
        taken = self._operations[operation.name]["requestBody"]["content"]
        media = headers.get("content-type", "").partition(";")[0].strip().lower() or JSON
        if media.endswith("+json"):
            media = JSON
        if media not in taken:
            raise HttpError(415, f"{operation.name} takes {' or '.join(taken)} in wire {self._version}, not {media}")
        self._check_encoding(operation, media, encoding)
        plain = decoded(content or b"", encoding)
        if media == PROTOBUF:
            return self._binary(plain)
        value = _parse(plain)
        validator = self._bodies.get(operation.name) or self._body_validator(operation.name)
        if not validator.is_valid(value):
            raise HttpError(422, validation_errors.items(validator.iter_errors(value), "body"))
        try:
            return self._converter.structure(value, operation.request)
        except ValueError as error:
            raise HttpError(422, [_item_of_model(error)]) from None

    def _check_encoding(self, operation: Operation, media: str, encoding: str) -> None:
        named = {each["name"].lower() for each in self._operations[operation.name].get("parameters", [])}
        taken = (ZSTD, *EVERYWHERE) if "content-encoding" in named and media == PROTOBUF else EVERYWHERE
        if encoding not in ("", "identity", *taken):
            where = f"{operation.name} as {media}"
            raise HttpError(
                415,
                f"{where} takes Content-Encoding {', '.join(taken)} or none in wire {self._version}, not {encoding}",
            )

    def _binary(self, content: bytes) -> Any:
        try:
            return decode_request(content, self._version)
        except (ValueError, OverflowError) as error:
            raise HttpError(422, [{"loc": ["body"], "msg": str(error), "type": "value_error"}]) from None

    def query(self, operation: Operation, given: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """All query parameters, converted, with defaults for those that are not given.

        Raises:
            Refusal: 422 for an unknown parameter or a value that does not fit.
        """
        schemas = self._query_schemas(operation.name)
        values: dict[str, Any] = {}
        for name, text in given:
            is_integer = schemas.get(name, {}).get("type") == "integer" and _INTEGER.fullmatch(text)
            values[name] = int(text) if is_integer else text
        if values:
            validator = self._queries.get(operation.name) or self._query_validator(operation.name, schemas)
            if not validator.is_valid(values):
                raise HttpError(422, validation_errors.items(validator.iter_errors(values), "query"))
        defaults = {name: schema["default"] for name, schema in schemas.items() if "default" in schema}
        return {**defaults, **values}

    def _body_validator(self, name: str) -> jsonschema_rs.Validator:
        content = self._operations[name]["requestBody"]["content"]
        schema = content[JSON]["schema"]
        return self._bodies.setdefault(name, self._build(schema))

    def _query_validator(self, name: str, schemas: Mapping[str, Json]) -> jsonschema_rs.Validator:
        schema = {"type": "object", "additionalProperties": False, "properties": dict(schemas)}
        return self._queries.setdefault(name, self._build(schema))

    def _query_schemas(self, name: str) -> dict[str, Json]:
        return {
            parameter["name"]: resolve(self._document, parameter["schema"])
            for parameter in self._operations[name].get("parameters", [])
            if parameter["in"] == "query"
        }

    def _build(self, schema: Json) -> jsonschema_rs.Validator:
        whole = {**schema, "components": self._document["components"]}
        return jsonschema_rs.Draft202012Validator(whole)


def _parse(content: bytes) -> Any:
    if not content:
        raise HttpError(422, [{"loc": ["body"], "msg": "there is no body; send a JSON object", "type": "missing"}])
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        item = {"loc": ["body", error.pos], "msg": f"the body is not JSON: {error}", "type": "json_invalid"}
        raise HttpError(422, [item]) from None


def _item_of_model(error: ValueError) -> ErrorDetail:
    """The item for what the schema lets pass and the model does not, such as 1.0 in place of 1."""
    # The text says where; what it was made of says why.
    reason = str(error.__context__ or error)
    match = _PLACE.search(str(error))
    steps = _STEP.findall(match[1]) if match else []
    place = ["body", *(int(step) if step.isdigit() else step for step in steps)]
    return {"loc": place, "msg": _PLACE.sub("", reason), "type": "value_error"}
