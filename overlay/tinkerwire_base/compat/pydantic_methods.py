"""The methods of pydantic on models, as code for the official types calls them; they do not need pydantic.

Their implementations in dumping, validating and fields are imported at the first call. The methods that no code for the
official types calls are not supported; their error names the alternative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
from typing_extensions import Self

from ..reflection import field_name, fields_of

if TYPE_CHECKING:
    from .dumping import Names
    from .fields import ModelField


class _ModelFields:
    """``Model.model_fields``: the descriptions of the fields, made at first use."""

    def __get__(self, model: Any, cls: type) -> Mapping[str, ModelField]:
        from .fields import model_fields  # noqa: PLC0415

        return model_fields(cls)


class _Unsupported:
    """A method of pydantic that models lack: access raises AttributeError, as ``hasattr`` expects, with a text."""

    def __init__(self, alternative: str) -> None:
        self._alternative = alternative

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, cls: type) -> Any:
        raise AttributeError(f"{cls.__name__}.{self._name} is not supported; {self._alternative}")


class PydanticMethods:
    """Dumps, validates and copies a model. Keys are those of the wire."""

    __slots__ = ()
    model_fields = _ModelFields()
    if not TYPE_CHECKING:
        model_construct = _Unsupported("call the class, which validates its arguments")
        model_fields_set = _Unsupported(
            "model_dump(exclude_defaults=True) returns the fields that are not at their defaults"
        )
        model_json_schema = _Unsupported("python -m tinkerwire_codegen export --wire V --format json-schema prints it")
        model_rebuild = _Unsupported("the types of models are always complete; remove the call")

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Iterate over names and values of the fields, as ``dict(model)`` does."""
        for attribute in fields_of(type(self)):
            yield field_name(attribute), getattr(self, field_name(attribute))
        yield from getattr(self, "extra_fields", {}).items()

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

    def model_dump_json(self, *, indent: int | None = None, **options: Any) -> str:
        """Return the JSON text of :meth:`model_dump`, which has the same ``options``; NaN is null."""
        from .dumping import json_text  # noqa: PLC0415

        return json_text(self.model_dump(mode="json", **options), indent)

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
            from_attributes: must not be True; pass a dict.
            context: accepted without effect.
            by_alias: accepted without effect.
            by_name: accepted without effect.

        Raises:
            ValueError: a value does not fit; the error names each with its place.
            NotImplementedError: ``from_attributes`` is True.
        """
        from .validating import validate  # noqa: PLC0415

        if from_attributes:
            raise NotImplementedError(f"{cls.__name__}: from_attributes is not supported; pass a dict of the values")
        return validate(cls, obj)

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """Return the model of a JSON text; ``options`` are those of :meth:`model_validate`."""
        from ..conversion.json_text import parse_json  # noqa: PLC0415

        text = json_data.encode() if isinstance(json_data, str) else bytes(json_data)
        return cls.model_validate(parse_json(text), **options)

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
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Return the schema by which pydantic reads and writes the model as a field of a user's model."""
        from .validating import core_schema  # noqa: PLC0415

        return core_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
        """Raise NotImplementedError: the contract has the JSON Schemas of models."""
        raise NotImplementedError(
            f"{cls.__name__}: models have no JSON Schema; annotate the field with pydantic.WithJsonSchema"
        )
