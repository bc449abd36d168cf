"""The contract of one wire version, as tests use it: what exists, and what a response may look like."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import jsonschema_rs

from tinkerwire_base.call import JSON, PROTOBUF
from tinkerwire_base.conversion.versioning import parse_version
from tinkerwire_generated.availability import FIELD_VERSIONS
from tinkerwire_generated.constants import PROTOBUF_OPERATIONS

from ..._server.http.openapi import Document, load_contract, resolve_reference
from ..._wire import codec
from ..exchange import Exchange

MAX_ERRORS = 5


class Contract:
    """The contract of one wire version.

    Args:
        wire: the version.

    Raises:
        ValueError: the contract does not describe the version.
    """

    def __init__(self, wire: str) -> None:
        self.wire = wire
        self.document = load_contract(wire)
        self._validators: dict[tuple[str, str, str], jsonschema_rs.Validator] = {}

    @cached_property
    def operations(self) -> dict[str, Document]:
        """The operations of the version by name."""
        return {
            operation["operationId"]: operation
            for item in self.document["paths"].values()
            for operation in item.values()
            if isinstance(operation, dict) and "operationId" in operation
        }

    def locate(self, operation: str) -> tuple[str, str]:
        """Return the method of an operation, and its path with braces."""
        for path, item in self.document["paths"].items():
            for method, found in item.items():
                if found.get("operationId") == operation:
                    return method.upper(), path
        raise KeyError(operation)

    def has_operation(self, name: str) -> bool:
        """Check whether the version has an operation."""
        return name in self.operations

    def has_field(self, model: str, field: str) -> bool:
        """Check whether the version has a field, under its name in the models."""
        versions = FIELD_VERSIONS.get(model, {}).get(field)
        if versions is None:
            return True
        since, until = versions
        version = parse_version(self.wire)
        return parse_version(since) <= version and (until is None or version < parse_version(until))

    def response_errors(self, operation: str, exchange: Exchange) -> list[str]:
        """Return where a response differs from the contract: in its status, its media type or its body."""
        # Newer versions send forward as a forward_backward.
        name = operation if operation in self.operations else PROTOBUF_OPERATIONS[operation]
        responses = self.operations[name]["responses"]
        response = responses.get(str(exchange.status)) or (responses.get("default") if exchange.status >= 400 else None)
        if response is None:
            return [f"status {exchange.status} is not one of {', '.join(responses)}"]
        if "$ref" in response:
            response = self.document["components"]["responses"][response["$ref"].rpartition("/")[2]]
        content = response.get("content")
        body = exchange.content
        if not content or (not body and exchange.status == 408):
            return []
        if exchange.media_type not in content:
            return [f"the media type is {exchange.media_type or 'absent'}, not {' or '.join(content)}"]
        if exchange.media_type == PROTOBUF:
            messages = content[PROTOBUF]["schema"].get("x-protobuf-messages", [])
            errors = [list(_protobuf_errors(message["message"], body)) for message in messages]
            return min(errors, key=len, default=[])
        if exchange.media_type != JSON:
            return []
        value = exchange.json()
        if value is None and body.strip() != b"null":
            return ["the body is not JSON"]
        return _list_errors(self._validator(operation, str(exchange.status), content[JSON].get("schema", {})), value)

    def result_errors(self, result_type: str, exchange: Exchange) -> list[str]:
        """Return where the result of a future differs from its model in the contract.

        Args:
            result_type: name of the model, such as ``SampleResponse``.
            exchange: the poll that returned the result.
        """
        if exchange.media_type == PROTOBUF:
            return list(_protobuf_errors(result_type, exchange.content))
        value = exchange.json()
        if value is None:
            return [f"the body is {exchange.media_type or 'no media type'} without JSON"]
        schemas = self.document["components"]["schemas"]
        if result_type not in schemas:
            return [f"wire {self.wire} has {result_type} as protobuf only, and the body is JSON"]
        return self.model_errors(result_type, value)

    def body_errors(self, operation: str, value: object) -> list[str]:
        """Return where a JSON value differs from the successful response of an operation; media types are left out."""
        content = self.operations[operation]["responses"].get("200", {}).get("content", {})
        if JSON not in content:
            return []
        return _list_errors(self._validator(operation, "200", content[JSON].get("schema", {})), value)

    def model_errors(self, model: str, value: object) -> list[str]:
        """Return where a JSON value differs from a model."""
        return _list_errors(self._validator(model, "result", {"$ref": f"#/components/schemas/{model}"}), value)

    def request_schema(self, operation: str) -> Document | None:
        """Return the schema of the JSON body of an operation, resolved; None if it has none in this version."""
        content = self.operations[operation].get("requestBody", {}).get("content", {})
        return resolve_reference(self.document, content[JSON]["schema"]) if JSON in content else None

    def _validator(self, name: str, part: str, schema: Document) -> jsonschema_rs.Validator:
        key = (name, part, str(schema.get("$ref")))
        if key not in self._validators:
            whole = {**schema, "components": self.document["components"]}
            self._validators[key] = jsonschema_rs.Draft202012Validator(whole)
        return self._validators[key]


def _list_errors(validator: jsonschema_rs.Validator, value: object) -> list[str]:
    return [_describe(error) for error, _ in zip(validator.iter_errors(value), range(MAX_ERRORS), strict=False)]


def _describe(error: jsonschema_rs.ValidationError) -> str:
    path = ".".join(str(step) for step in error.instance_path)
    return f"{path or 'the body'}: {error.message}"[:500]


def _protobuf_errors(name: str, content: bytes) -> Iterator[str]:
    from tinkerwire_generated import models  # noqa: PLC0415

    try:
        codec.decode(content, getattr(models, name))
    except ValueError as error:
        yield f"the protobuf message does not parse: {error}"
