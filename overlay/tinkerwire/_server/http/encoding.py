"""Encoding of responses and results for one wire version, as JSON or protobuf, without fields it does not have."""

from __future__ import annotations

from operator import is_
from typing import Any

import attrs

from tinkerwire._server.http.protobuf import encode_result
from tinkerwire._wire.codec import is_decodable
from tinkerwire._wire.protobuf import decode_result
from tinkerwire_base.call import JSON, PROTOBUF
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.conversion.version_rules import VersionRules
from tinkerwire_base.reflection import as_comparable, default_of, is_protobuf_only
from tinkerwire_generated.availability import FIELD_VERSIONS, TYPE_VERSIONS
from tinkerwire_generated.models import RequestFailedResponse
from tinkerwire_generated.protobuf import MESSAGE_VERSIONS


@attrs.frozen(kw_only=True)
class EncodedResult:
    """An encoded result.

    Args:
        content: the encoded bytes.
        media: the media type, JSON or protobuf.
        model: the model of the result.
    """

    content: bytes
    media: str
    model: type

    @property
    def failed(self) -> bool:
        """True if the work failed."""
        return self.model is RequestFailedResponse


class ResultEncoder:
    """An encoder for one wire version. Thread safe.

    Args:
        version: the wire version of the clients.
    """

    def __init__(self, version: str) -> None:
        self._version = version
        # The encoder drops absent fields first, so the converter never rejects a value.
        self._rules = VersionRules(min_version=version, fields=FIELD_VERSIONS)
        self._converter = Converter(self._rules)
        self._absent: dict[type, dict[str, Any]] = {}

    def encode_json(self, value: Any) -> bytes:
        """Encode a model or JSON value as JSON, without fields that the version does not have."""
        return self._converter.encode(self._drop_absent_fields(value))

    def encode_result(self, result: Any) -> EncodedResult:
        """Encode a result as protobuf if the version supports that, otherwise as JSON.

        Raises:
            ValueError, OverflowError: protobuf cannot represent a value.
        """
        model = type(result)
        if not self._has_protobuf(model):
            return EncodedResult(content=self.encode_json(result), media=JSON, model=model)
        return EncodedResult(content=encode_result(result, self._version), media=PROTOBUF, model=model)

    def convert(self, result: EncodedResult, accept: str) -> EncodedResult:
        """Return the result in the encoding that an Accept header requests; JSON unless it requests protobuf."""
        if result.media == JSON or self._accepts_protobuf(result.model, accept.lower()):
            return result
        value: Any = decode_result(result.content, result.model)
        return EncodedResult(content=self.encode_json(value), media=JSON, model=result.model)

    def _has_protobuf(self, model: type) -> bool:
        return is_decodable(model) and self._rules.may_have(MESSAGE_VERSIONS[model.__name__])

    def _accepts_protobuf(self, model: type, accept: str) -> bool:
        if PROTOBUF in accept:
            return True
        has_json = self._rules.may_have(TYPE_VERSIONS[model.__name__])
        return not has_json and "json" not in accept

    def _drop_absent_fields(self, value: Any) -> Any:
        """Set the fields that the version or JSON does not have to their defaults, which are never sent."""
        if isinstance(value, list):
            # Lists of numbers may be long, and numbers have no fields.
            is_scalar_list = not value or isinstance(value[0], int | float | str | None)
            if is_scalar_list:
                return value
            members = [self._drop_absent_fields(item) for item in value]
            return value if all(map(is_, members, value)) else members
        if isinstance(value, dict):
            items = {key: self._drop_absent_fields(item) for key, item in value.items()}
            return value if all(map(is_, items.values(), value.values())) else items
        model = type(value)
        if not attrs.has(model):
            return value
        absent = self._absent_defaults(model)
        changes = {name: default for name, default in absent.items() if as_comparable(getattr(value, name)) != default}
        # Reading such a field would convert its numbers to a list.
        numbers = getattr(model, "_sent_as_stored", ())
        for attribute in attrs.fields(model):
            if attribute.alias not in absent and attribute.alias not in numbers:
                field = getattr(value, attribute.alias)
                reduced = self._drop_absent_fields(field)
                if reduced is not field:
                    changes[attribute.alias] = reduced
        return attrs.evolve(value, **changes) if changes else value

    def _absent_defaults(self, model: type) -> dict[str, Any]:
        """Return the fields that JSON of this version does not have, with their defaults."""
        if model not in self._absent:
            defaults = {attribute.alias: default_of(attribute) for attribute in attrs.fields(model)}
            protobuf_only = [attribute.alias for attribute in attrs.fields(model) if is_protobuf_only(attribute)]
            names = [*self._rules.absent_fields(model), *protobuf_only]
            self._absent[model] = {name: defaults[name] for name in names}
        return self._absent[model]
