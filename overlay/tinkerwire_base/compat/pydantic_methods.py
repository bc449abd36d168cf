"""The methods of pydantic on models, as code for the official types calls them; they do not need pydantic.

Their implementations in dumping, validating and json_schema are imported at the first call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs
from typing_extensions import Self

from ..reflection import field_name

if TYPE_CHECKING:
    from .dumping import Names
    from .json_schema import ModelField

Mode = Literal["python", "json"]


class _ModelFields:
    """``Model.model_fields``: the descriptions of the fields, made at first use."""

    def __get__(self, model: Any, cls: type) -> Mapping[str, ModelField]:
        from .json_schema import model_fields  # noqa: PLC0415

        return model_fields(cls)


class PydanticMethods:
    """Dumps, validates and copies a model. Keys are those of the wire."""

    __slots__ = ()
    model_fields = _ModelFields()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Iterate over names and values of the fields, as ``dict(model)`` does."""
        for attribute in _attributes(self):
            if field_name(attribute) != "extra_fields":
                yield field_name(attribute), getattr(self, field_name(attribute))
        yield from getattr(self, "extra_fields", {}).items()

    @property
    def model_fields_set(self) -> set[str]:
        """The fields that differ from their defaults: models do not record the arguments of the constructor."""
        from .dumping import is_default  # noqa: PLC0415

        return {field_name(attribute) for attribute in _attributes(self) if not is_default(self, attribute)}

    def model_dump(
        self,
        *,
        mode: str = "python",
        include: Names = None,
        exclude: Names = None,
        by_alias: bool | None = None,
        exclude_unset: bool = False,
        exclude_defaults: bool = False,
        exclude_none: bool = False,
        round_trip: bool = False,
        warnings: bool | str = True,
        serialize_as_any: bool = False,
    ) -> dict[str, Any]:
        """Return the model as dicts and lists.

        Arrays become lists, bytes become base64 text. UNSET fields are omitted, as are fields that the newest wire
        lacks while they are at their defaults.

        Args:
            mode: ``python`` keeps datetimes and tuples; ``json`` returns only JSON values.
            include: names of the top-level fields to dump.
            exclude: names of the top-level fields to omit.
            by_alias: accepted without effect.
            exclude_unset: omit fields at their defaults, as models do not record which fields were set.
            exclude_defaults: omit fields at their defaults.
            exclude_none: omit fields that are None.
            round_trip: accepted without effect.
            warnings: accepted without effect.
            serialize_as_any: accepted without effect.
        """
        from .dumping import Dump  # noqa: PLC0415

        dump = Dump(json=mode == "json", defaults=not (exclude_unset or exclude_defaults), nulls=not exclude_none)
        return dump.model(self, include, exclude)

    def model_dump_json(self, *, indent: int | None = None, ensure_ascii: bool = False, **options: Any) -> str:
        """Return the JSON text of :meth:`model_dump`, which has the same ``options``; NaN is null."""
        from .dumping import json_text  # noqa: PLC0415

        return json_text(self.model_dump(mode="json", **options), indent, ensure_ascii)

    @classmethod
    def model_validate(
        cls,
        obj: Any,
        *,
        strict: bool | None = None,
        from_attributes: bool | None = None,
        context: Any = None,
        by_alias: bool | None = None,
        by_name: bool | None = None,
    ) -> Self:
        """Return the model of a dict, as from :meth:`model_dump`; a model of this class is returned unchanged.

        Args:
            obj: a dict or a model.
            strict: accepted without effect.
            from_attributes: read the attributes of any object.
            context: accepted without effect.
            by_alias: accepted without effect.
            by_name: accepted without effect.

        Raises:
            ValueError: a value does not fit; the error names each with its place.
        """
        from .validating import validate  # noqa: PLC0415

        return validate(cls, obj, from_attributes=bool(from_attributes))

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """Return the model of a JSON text; ``options`` are those of :meth:`model_validate`."""
        from ..conversion.converter import parse_json  # noqa: PLC0415

        text = json_data.encode() if isinstance(json_data, str) else bytes(json_data)
        return cls.model_validate(parse_json(text), **options)

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:
        """Make a model without validation; omitted fields have their defaults."""
        from .validating import construct  # noqa: PLC0415

        return construct(cls, values)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, validated as in the constructor if ``update`` replaces fields.

        Args:
            update: new values by field.
            deep: copy the values of the fields, too.
        """
        import copy  # noqa: PLC0415

        source: Any = copy.deepcopy(self) if deep else self
        if not update:
            found: Self = source if deep else copy.copy(self)
        else:
            found = attrs.evolve(source, **update)
        return found

    @classmethod
    def model_json_schema(cls, by_alias: bool = True, ref_template: str = "#/$defs/{model}") -> dict[str, Any]:
        """Return the JSON Schema of the model's dump, from the contract.

        Args:
            by_alias: accepted without effect.
            ref_template: the form of a ``$ref`` to another model.
        """
        from .json_schema import json_schema  # noqa: PLC0415

        return json_schema(cls, ref_template)

    @classmethod
    def model_rebuild(cls, **options: Any) -> None:
        """Do nothing: the types of models are always complete."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Return the schema by which pydantic reads and writes the model as a field of a user's model."""
        from .json_schema import core_schema  # noqa: PLC0415

        return core_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        """Return the JSON Schema by which pydantic describes the model as a field of a user's model."""
        from .json_schema import inline_schema  # noqa: PLC0415

        return inline_schema(cls)


def _attributes(model: Any) -> Any:
    return attrs.fields(type(model))
