"""Answers and results as one wire version has them: cut to its fields, as JSON or as a binary message."""

from __future__ import annotations

from typing import Any

import attrs

from tinkerwire._server.http.protobuf import encode_output, encode_sample
from tinkerwire._wire.protobuf import decode_output, decode_sample
from tinkerwire_base.call import JSON, PROTOBUF
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.conversion.version_rules import VersionRules, is_in_range
from tinkerwire_base.reflection import as_comparable, default_of, is_protobuf_only
from tinkerwire_generated.availability import FIELD_VERSIONS, TYPE_VERSIONS
from tinkerwire_generated.models import ForwardBackwardOutput, RequestFailedResponse, SampleResponse
from tinkerwire_generated.protobuf import MESSAGE_VERSIONS

BINARY = (SampleResponse, ForwardBackwardOutput)
"""Results that have a binary form."""


@attrs.frozen(kw_only=True)
class Result:
    """A result, encoded.

    Args:
        media: JSON or application/x-protobuf.
        kind: of which model it is.
    """

    content: bytes
    media: str
    kind: type

    @property
    def failed(self) -> bool:
        """Whether the work failed."""
        return self.kind is RequestFailedResponse


class ResultEncoder:
    """Encodes for one wire version; safe to use from any thread.

    Args:
        version: the wire version that clients speak.
    """

    def __init__(self, version: str) -> None:
        self._version = version
        self._vocabulary = VersionRules(
            min_version=version,
            max_version=version,
            name=f"wire {version}",
            fields=FIELD_VERSIONS,
            types={},
            required={},
            values={},
            scalar_types={},
        )
        self._absent: dict[type, dict[str, Any]] = {}
        # What is absent was cut before, so the converter has nothing to refuse.
        self._converter = Converter(version, FIELD_VERSIONS)

    def json(self, value: Any) -> bytes:
        """The JSON text of a model or of plain values, without the fields that the version lacks."""
        return self._converter.encode(self._cut(value))

    def result(self, value: Any) -> Result:
        """A result in the form that the version prefers: binary where it has that.

        Raises:
            ValueError, OverflowError: a binary message cannot hold it.
        """
        kind = type(value)
        if not self._has_binary(kind):
            return Result(content=self.json(value), media=JSON, kind=kind)
        encode: Any = encode_sample if kind is SampleResponse else encode_output
        return Result(content=encode(value, self._version), media=PROTOBUF, kind=kind)

    def accepted(self, result: Result, accept: str) -> Result:
        """The result in a form that ``accept``, the header, asks for; JSON unless that asks for the binary one."""
        if result.media == JSON or self._wants_binary(result.kind, accept.lower()):
            return result
        if result.kind is SampleResponse:
            content = self.json(decode_sample(result.content))
        else:
            content = self.json(decode_output(result.content))
        return Result(content=content, media=JSON, kind=result.kind)

    def _has_binary(self, kind: type) -> bool:
        return kind in BINARY and is_in_range(self._version, *MESSAGE_VERSIONS[kind.__name__])

    def _wants_binary(self, kind: type, accept: str) -> bool:
        if PROTOBUF in accept:
            return True
        has_json = is_in_range(self._version, *TYPE_VERSIONS[kind.__name__])
        return not has_json and "json" not in accept

    def _cut(self, value: Any) -> Any:
        """The value, with the fields that the version, or JSON, lacks at their defaults, which are never sent."""
        if isinstance(value, list):
            # Numbers come by the million and have no fields.
            is_plain = not value or isinstance(value[0], int | float | str | None)
            return value if is_plain else [self._cut(each) for each in value]
        if isinstance(value, dict):
            return {key: self._cut(each) for key, each in value.items()}
        kind = type(value)
        if not attrs.has(kind):
            return value
        absent = self._absent_of(kind)
        changes = {name: default for name, default in absent.items() if as_comparable(getattr(value, name)) != default}
        for attribute in attrs.fields(kind):
            if attribute.alias not in absent:
                part = getattr(value, attribute.alias)
                cut = self._cut(part)
                if cut is not part:
                    changes[attribute.alias] = cut
        return attrs.evolve(value, **changes) if changes else value

    def _absent_of(self, kind: type) -> dict[str, Any]:
        if kind not in self._absent:
            defaults = {attribute.alias: default_of(attribute) for attribute in attrs.fields(kind)}
            binary = [attribute.alias for attribute in attrs.fields(kind) if is_protobuf_only(attribute)]
            self._absent[kind] = {name: defaults[name] for name in [*self._vocabulary.absent_fields(kind), *binary]}
        return self._absent[kind]
