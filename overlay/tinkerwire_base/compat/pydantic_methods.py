"""The methods of pydantic that code written for the official types calls; none of them needs pydantic.

They are thin: what they do stands in dumping, validating and json_schema, which load at the first call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs
from typing_extensions import Self

from ..reflection import field_name

if TYPE_CHECKING:
    from .dumping import Choice
    from .json_schema import ModelField

Mode = Literal["python", "json"]


class _ModelFields:
    """``Model.model_fields``: what is known of each field, made when it is first asked for."""

    def __get__(self, model: Any, cls: type) -> Mapping[str, ModelField]:
        from .json_schema import model_fields  # noqa: PLC0415

        return model_fields(cls)


class PydanticMethods:
    """Dumps, validates and copies a model. Keys are those of the wire, which the fields are called after."""

    __slots__ = ()
    model_fields = _ModelFields()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Iterate over names and values of the fields, which is what dict() of a model takes."""
        for attribute in _attributes(self):
            if field_name(attribute) != "extra_fields":
                yield field_name(attribute), getattr(self, field_name(attribute))
        yield from getattr(self, "extra_fields", {}).items()

    @property
    def model_fields_set(self) -> set[str]:
        """The fields that differ from their defaults: models do not record which ones were given."""
        from .dumping import is_default  # noqa: PLC0415

        return {field_name(attribute) for attribute in _attributes(self) if not is_default(self, attribute)}

    def model_dump(
        self,
        *,
        mode: str = "python",
        include: Choice = None,
        exclude: Choice = None,
        by_alias: bool | None = None,
        exclude_unset: bool = False,
        exclude_defaults: bool = False,
        exclude_none: bool = False,
        round_trip: bool = False,
        warnings: bool | str = True,
        serialize_as_any: bool = False,
    ) -> dict[str, Any]:
        """The model as dicts and lists.

        Arrays become lists, bytes become base64 text. Fields that the newest wire lacks are left out while they are
        at their defaults, as is what a field has for an absent key.

        Args:
            mode: ``python`` keeps datetimes and tuples; ``json`` gives only what JSON has.
            include: names of fields, or a dict of what to take of each; of a list by position or ``__all__``.
            exclude: the same, to leave out.
            exclude_unset: leave out fields at their defaults, as it is not recorded which ones were given.
            exclude_defaults: leave out fields at their defaults.
            exclude_none: leave out fields that are None.
            by_alias, round_trip, warnings, serialize_as_any: taken, as dumps are the same either way.
        """
        from .dumping import Dump  # noqa: PLC0415

        dump = Dump(json=mode == "json", defaults=not (exclude_unset or exclude_defaults), nulls=not exclude_none)
        return dump.model(self, include, exclude)

    def model_dump_json(self, *, indent: int | None = None, ensure_ascii: bool = False, **options: Any) -> str:
        """The JSON text of :meth:`model_dump`; NaN is null. ``options`` are those of it."""
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
        """The model of a dict such as :meth:`model_dump` gives; a model of this class is handed back as it is.

        Args:
            from_attributes: take any object for a dict of its attributes.
            strict, context, by_alias, by_name: taken, as reading is the same either way.

        Raises:
            ValueError: something does not fit; one line per misfit, each with its place.
        """
        from .validating import validated  # noqa: PLC0415

        return validated(cls, obj, from_attributes=bool(from_attributes))

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """:meth:`model_validate` of a JSON text; ``options`` are those of it."""
        from ..conversion.converter import parse_json  # noqa: PLC0415

        text = json_data.encode() if isinstance(json_data, str) else bytes(json_data)
        return cls.model_validate(parse_json(text), **options)

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:
        """A model of values that nobody looks at; fields that are not given have their defaults."""
        from .validating import constructed  # noqa: PLC0415

        return constructed(cls, values)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, in which ``update`` replaces fields; what it gives is checked as in the constructor.

        Args:
            deep: copy what the fields hold, too.
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
        """The JSON Schema of the model's dump, from the contract that it was generated from.

        Args:
            ref_template: how a ``$ref`` names another model.
        """
        from .json_schema import json_schema  # noqa: PLC0415

        return json_schema(cls, ref_template)

    @classmethod
    def model_rebuild(cls, **options: Any) -> None:
        """Nothing: models refer to each other from the start."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """How pydantic reads and writes the model as a field of a model of the user's."""
        from .json_schema import core_schema  # noqa: PLC0415

        return core_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        """How pydantic describes the model as a field of a model of the user's."""
        from .json_schema import inlined  # noqa: PLC0415

        return inlined(cls)


def _attributes(model: Any) -> Any:
    return attrs.fields(type(model))
