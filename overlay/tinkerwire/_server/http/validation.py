"""Validation of requests against the contract of the served wire version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import jsonschema_rs
import orjson

from tinkerwire._server.http import validation_errors
from tinkerwire._server.http.content_encoding import STANDARD_ENCODINGS, ZSTD, decompress
from tinkerwire._server.http.invalid_part import find_invalid_part
from tinkerwire._server.http.number_arrays import parse_number_lists
from tinkerwire._server.http.openapi import Document, resolve_reference
from tinkerwire._server.http.protobuf import decode_request
from tinkerwire._server.http.responses import ErrorDetail, HttpError
from tinkerwire_base.call import JSON, PROTOBUF, Operation
from tinkerwire_base.collection_pause import without_collections
from tinkerwire_base.conversion.converter import Converter

MAX_CONTAINERS = 2**20
"""Maximum number of lists and objects of a body; empty ones take twenty times the memory of their text."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_ERROR_PATH = re.compile(r" @ \w+([\w.\[\]']*)$")
_PATH_STEP = re.compile(r"\w+")


class Validator:
    """A validator of bodies and query parameters; compiles the schema of an operation at its first request.

    Args:
        document: the contract of one wire version.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._version = document["info"]["version"]
        self._operations: dict[str, Document] = {
            operation["operationId"]: operation for item in document["paths"].values() for operation in item.values()
        }
        self._converter = Converter()
        self._validators: dict[tuple[str, str], jsonschema_rs.Validator] = {}

    def parse_body(
        self, operation: Operation, content: bytes | None, headers: Mapping[str, str], *, packs_numbers: bool = False
    ) -> Any:
        """Return the request model of a body; None for operations without a body.

        Args:
            operation: the requested operation.
            content: the body as the client sent it.
            headers: headers by lower-case name.
            packs_numbers: read long lists of numbers as arrays of their dtype, which takes less time. Floats of JSON
                are rounded to float32.

        Raises:
            HttpError: 415 for an unsupported media type or encoding, 400 for invalid compressed data, 422 for a body
                that does not fit the contract.
        """
        encoding = headers.get("content-encoding", "").strip().lower()
        if "requestBody" not in self._operations[operation.name]:
            return None
        supported = self._operations[operation.name]["requestBody"]["content"]
        media = headers.get("content-type", "").partition(";")[0].strip().lower() or JSON
        if media.endswith("+json"):
            media = JSON
        if media not in supported:
            names = " or ".join(supported)
            raise HttpError(415, f"{operation.name}: Content-Type must be {names} in wire {self._version}, got {media}")
        self._check_encoding(operation, media, encoding)
        decompressed = decompress(content or b"", encoding)
        if media == PROTOBUF:
            return self._parse_protobuf(decompressed)
        with without_collections():
            value = self._parse_json(operation, supported[JSON]["schema"], decompressed, packs_numbers=packs_numbers)
        try:
            return self._converter.structure(value, operation.request)
        except ValueError as error:
            raise HttpError(422, [_model_error_detail(error)]) from None

    def _parse_json(self, operation: Operation, schema: Document, content: bytes, *, packs_numbers: bool) -> Any:
        """Parse a body and validate it.

        Raises:
            HttpError: the text is not JSON, or does not fit the contract.
        """
        if packs_numbers:
            value, arrays = parse_number_lists(content, _parse)
            for numbers in arrays:
                numbers.put_ends()
            # Validated again below, so that errors name places in the body as it was sent.
            with suppress(HttpError):
                self._validate(operation, "body", schema, value)
                for numbers in arrays:
                    numbers.put_array()
                return value
        value = _parse(content)
        self._validate(operation, "body", schema, value)
        return value

    def parse_query(self, operation: Operation, parameters: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Return all query parameters, converted, with defaults for those that are absent.

        Raises:
            HttpError: 422 for an unknown parameter or an invalid value.
        """
        schemas = self._query_schemas(operation.name)
        values: dict[str, Any] = {}
        for name, text in parameters:
            is_integer = schemas.get(name, {}).get("type") == "integer" and _INTEGER.fullmatch(text)
            values[name] = int(text) if is_integer else text
        if values:
            schema = {"type": "object", "additionalProperties": False, "properties": schemas}
            self._validate(operation, "query", schema, values)
        defaults = {name: schema["default"] for name, schema in schemas.items() if "default" in schema}
        return {**defaults, **values}

    def _check_encoding(self, operation: Operation, media: str, encoding: str) -> None:
        parameters = self._operations[operation.name].get("parameters", [])
        has_zstd = media == PROTOBUF and any(field["name"].lower() == "content-encoding" for field in parameters)
        supported = (ZSTD, *STANDARD_ENCODINGS) if has_zstd else STANDARD_ENCODINGS
        if encoding not in ("", "identity", *supported):
            raise HttpError(
                415,
                f"{operation.name} as {media}: Content-Encoding must be absent or one of {', '.join(supported)} in "
                f"wire {self._version}, got {encoding}",
            )

    def _parse_protobuf(self, content: bytes) -> Any:
        try:
            return decode_request(content, self._version)
        except (ValueError, OverflowError) as error:
            raise HttpError(422, [{"loc": ["body"], "msg": str(error), "type": "value_error"}]) from None

    def _validate(self, operation: Operation, source: str, schema: Document, value: Any) -> None:
        validator = self._validators.get((operation.name, source))
        if validator is None:
            validator = jsonschema_rs.Draft202012Validator({**schema, "components": self._document["components"]})
            self._validators[operation.name, source] = validator
        try:
            if validator.is_valid(value):
                return
            part = find_invalid_part(validator.is_valid, value)
            details = validation_errors.error_details(validator.iter_errors(part), source)
        except ValueError:
            # The validator has a limit of its own.
            details = [{"loc": [source], "msg": "the values are nested too deeply", "type": "value_error"}]
        raise HttpError(422, details)

    def _query_schemas(self, name: str) -> dict[str, Document]:
        return {
            parameter["name"]: resolve_reference(self._document, parameter["schema"])
            for parameter in self._operations[name].get("parameters", [])
            if parameter["in"] == "query"
        }


def _parse(content: bytes) -> Any:
    if not content:
        raise HttpError(422, [{"loc": ["body"], "msg": "the body is missing; send a JSON object", "type": "missing"}])
    if len(content) > MAX_CONTAINERS and content.count(b"[") + content.count(b"{") > MAX_CONTAINERS:
        raise HttpError(
            413, f"the body must not have more than {MAX_CONTAINERS} lists and objects; send smaller batches"
        )
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        detail = {"loc": ["body", error.pos], "msg": f"the body is not JSON: {error}", "type": "json_invalid"}
        raise HttpError(422, [detail]) from None


def _model_error_detail(error: ValueError) -> ErrorDetail:
    """Return the error detail for a value that the schema accepts and the model rejects, such as 1.0 for 1."""
    # The error names the field, its context has the reason.
    reason = str(error.__context__ or error)
    match = _ERROR_PATH.search(str(error))
    steps = _PATH_STEP.findall(match[1]) if match else []
    path = ["body", *(int(step) if step.isdigit() else step for step in steps)]
    return {"loc": path, "msg": _ERROR_PATH.sub("", reason), "type": "value_error"}
