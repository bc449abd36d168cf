"""Copies between protobuf messages and models, driven by the generated table of the fields of all messages.

A field that has the same name and type in message and model needs no code of its own. Other fields have a row in the
tables of :mod:`.protobuf_forms`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import attrs

from tinkerwire_base.reflection import as_comparable, default_of, field_name, forbids_extra
from tinkerwire_base.short_repr import short_repr
from tinkerwire_base.unset import UNSET
from tinkerwire_base.validators import NumberRangeError
from tinkerwire_generated import models
from tinkerwire_generated.protobuf import ENUM_VALUES, MESSAGE_FIELDS

from .protobuf_messages import check_model, has_field

T = TypeVar("T")


@attrs.frozen
class Form:
    """The functions that copy a value to protobuf and back; None for the function of a plain field.

    ``read`` returns UNSET for the default of the model.
    """

    write: Any
    read: Any


PLAIN = Form(None, None)
NO_FIELDS: Mapping[str, Sequence[str]] = {}


@attrs.frozen(kw_only=True)
class FormTables:
    """The fields and messages whose form differs from the form in the models.

    The inner keys of the first three tables are names of fields in models. In the signatures, ``place`` is the path of
    a value for errors; ``prefix`` is the path of a model and a dot, or an empty text.
    """

    names: Mapping[str, Mapping[str, str]]
    """Message to field to its name in the message."""
    fields: Mapping[str, Mapping[str, Form]]
    """Message to field to ``write(codec, message, prefix, value)`` and ``read(codec, prefix, message)``."""
    values: Mapping[str, Mapping[str, Form]]
    """Message to field to ``write(place, value)``, which returns a scalar, and ``read(place, scalar)``."""
    messages: Mapping[str, Form]
    """Message to ``write(message, place, value)`` and ``read(place, message)``."""


class MessageCodec:
    """Copies fields between messages and models for one range of wire versions. Thread safe.

    Args:
        tables: the fields and messages that need functions of their own.
        oldest: the oldest possible wire version; a field that it lacks is sent unless it is at its default.
        newest: the newest possible wire version; None for the newest of the contract.
        omitted: message to fields of its model that are left out.
    """

    def __init__(
        self,
        tables: FormTables,
        oldest: str | None,
        newest: str | None,
        omitted: Mapping[str, Sequence[str]] = NO_FIELDS,
    ) -> None:
        self.oldest, self.newest = oldest, newest
        self._omitted = omitted
        self._tables = tables
        self._forms: dict[str, Form] = dict(tables.messages)
        self._model_forms: dict[tuple[str, Any], Form] = {}

    def write(self, name: str, message: Any, model: Any) -> None:
        """Copy the fields of a model to a message of a name.

        Raises:
            DialectError: the wire versions do not have a value of the model.
            ValueError, OverflowError, TypeError: the message cannot hold a value; the error has the path.
        """
        self._model_form(name, type(model)).write(message, "", model)

    def read(self, name: str, message: Any, model: type[T]) -> T:
        """Return the model of a message of a name.

        Raises:
            ValueError: the message is malformed, or the model rejects a value; the error has the path.
        """
        value: T = self._model_form(name, model).read("", message)
        return value

    def form_of(self, name: str) -> Form:
        """Return the form of a message: its own, a union of other messages, or the model of the same name."""
        if name not in self._forms:
            oneofs = {oneof for _, _, oneof in MESSAGE_FIELDS[name].values()}
            is_union = len(oneofs) == 1 and all(oneofs)
            self._forms[name] = self._union_form(name, *oneofs) if is_union else self._nested_form(name)
        return self._forms[name]

    def _union_form(self, name: str, oneof: str) -> Form:
        kinds = {field: kind for field, (kind, _, _) in MESSAGE_FIELDS[name].items()}
        forms = {field: self.form_of(kind) for field, kind in kinds.items()}
        fields = {getattr(models, kind): field for field, kind in kinds.items()}

        def write(message: Any, place: str, value: Any) -> None:
            field = fields.get(type(value)) or next((fields[kind] for kind in fields if isinstance(value, kind)), None)
            if field is None:
                expected = ", ".join(kinds.values())
                raise ValueError(f"{place}: {type(value).__name__} has no protobuf form; expected one of {expected}")
            forms[field].write(getattr(message, field), place, value)

        def read(place: str, message: Any) -> Any:
            field = message.WhichOneof(oneof)
            if field is None:
                raise ValueError(f"{place}: must be one of {', '.join(kinds)}")
            return forms[field].read(place, getattr(message, field))

        return Form(write, read)

    def _nested_form(self, name: str) -> Form:
        model = getattr(models, name)
        form = self._model_form(name, model)
        names = self._tables.names.get(name, {})
        supported = {names.get(field_name(attribute), field_name(attribute)) for attribute in attrs.fields(model)}
        unsupported = {*MESSAGE_FIELDS[name]} - supported

        def write(message: Any, place: str, value: Any) -> None:
            if not isinstance(value, model):
                raise TypeError(f"{place}: expected a {name}, got {short_repr(value)}")
            check_model(value, self.newest)
            form.write(message, place, value)

        def read(place: str, message: Any) -> Any:
            for field in unsupported.intersection(descriptor.name for descriptor, _ in message.ListFields()):
                raise ValueError(f"{place}.{field}: not supported by this server; omit it")
            return form.read(place, message)

        return Form(write, read if unsupported else form.read) if forbids_extra(model) else form

    def _model_form(self, name: str, model: Any) -> Form:
        form = self._model_forms.get((name, model))
        if form is not None:
            return form
        writes: list[tuple[str, Any]] = []
        reads: list[tuple[str, str, bool, Any]] = []
        own_reads: list[tuple[str, Any]] = []

        def write(message: Any, place: str, value: Any) -> None:
            prefix = place and place + "."
            for field, write_field in writes:
                item = getattr(value, field)
                if item is not None and item is not UNSET:
                    write_field(message, prefix, item)

        def read(place: str, message: Any) -> Any:
            prefix, values = place and place + ".", {}
            for field, message_field, has_presence, read_value in reads:
                if not has_presence or message.HasField(message_field):
                    value = getattr(message, message_field)
                    if read_value is not None:
                        value = read_value(prefix + message_field, value)
                    if value is not UNSET:
                        values[field] = value
            for field, read_field in own_reads:
                value = read_field(self, prefix, message)
                if value is not UNSET:
                    values[field] = value
            try:
                return model(**values)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{place or name}: {error}") from None

        for attribute in attrs.fields(model):
            field, default = field_name(attribute), default_of(attribute)
            if field in self._omitted.get(name, ()):
                continue
            message_field = self._tables.names.get(name, {}).get(field, field)
            own = self._tables.fields.get(name, {}).get(field, PLAIN)
            write_field: Any
            if own.write:
                write_field = partial(own.write, self)
            elif message_field in MESSAGE_FIELDS[name]:
                write_field = self._field_writer(name, message_field, field)
            else:
                writes.append((field, _write_unless(default, _refuse(field))))
                continue
            is_in_all = has_field(self.oldest, name, message_field)
            writes.append((field, write_field if is_in_all else _write_unless(default, write_field)))
            if own.read:
                own_reads.append((field, own.read))
            else:
                reads.append((field, message_field, *self._field_reader(name, message_field, field, default)))
        # Only now, as another thread uses a form as soon as it is in the table.
        form = self._model_forms[name, model] = Form(write, read)
        return form

    def _item_form(self, name: str, message_field: str, field: str) -> Form:
        """Return the form of a field, or of the items of a list or map; the functions of a plain scalar are None."""
        kind, _, _ = MESSAGE_FIELDS[name][message_field]
        if kind in MESSAGE_FIELDS:
            return self.form_of(kind)
        own = self._tables.values.get(name, {}).get(field, PLAIN)
        return _enum_form(kind) if kind in ENUM_VALUES else own

    def _field_writer(self, name: str, message_field: str, field: str) -> Callable[[Any, str, Any], None]:
        kind, label, _ = MESSAGE_FIELDS[name][message_field]
        write = self._item_form(name, message_field, field).write

        def write_messages(message: Any, prefix: str, value: Any) -> None:
            part, place = getattr(message, message_field), prefix + field
            if label == "repeated":
                for position, item in enumerate(value):
                    write(part.add(), f"{place}[{position}]", item)
            elif label == "map":
                for key, item in value.items():
                    write(part[key], f"{place}[{key!r}]", item)
            else:
                part.SetInParent()
                write(part, place, value)

        def write_scalars(message: Any, prefix: str, value: Any) -> None:
            place = prefix + field
            if write:
                value = _convert(write, label, place, value)
            try:
                if kind == "float":
                    # Protobuf sends infinity for a number beyond float32; struct rejects the number.
                    items = value if label == "repeated" else value.values() if label == "map" else [value]
                    struct.pack(f"<{len(items)}f", *items)
                if label == "repeated":
                    getattr(message, message_field).extend(value)
                elif label == "map":
                    getattr(message, message_field).update(value)
                else:
                    setattr(message, message_field, value)
            except (TypeError, ValueError, AttributeError, OverflowError, struct.error) as error:
                is_number = isinstance(error, ValueError | OverflowError)
                text = f"{place}: {short_repr(value)} does not fit into {kind}, the type in protobuf"
                raise (NumberRangeError if is_number else TypeError)(text) from error

        return write_messages if kind in MESSAGE_FIELDS else write_scalars

    def _field_reader(self, name: str, message_field: str, field: str, default: Any) -> tuple[bool, Any]:
        """Return whether a message records the presence of a field, and the function that converts its value."""
        kind, label, oneof = MESSAGE_FIELDS[name][message_field]
        read = self._item_form(name, message_field, field).read
        if field in self._tables.values.get(name, {}):
            return False, read
        has_presence = label == "optional" or bool(oneof) or (kind in MESSAGE_FIELDS and not label)
        omits_empty = not has_presence and (default is None or default is UNSET)

        copy = {"repeated": list, "map": dict}.get(label)

        def convert(place: str, value: Any) -> Any:
            if read:
                value = _convert(read, label, place, value)
            elif copy:
                value = copy(value)
            return UNSET if omits_empty and not value else value

        return has_presence, convert if copy or omits_empty else read


def _refuse(field: str) -> Callable[[Any, str, Any], None]:
    def write(_: Any, prefix: str, value: Any) -> None:
        raise ValueError(f"{prefix}{field}: the protobuf message does not have this field, got {short_repr(value)}")

    return write


def _write_unless(default: Any, write: Callable[[Any, str, Any], None]) -> Callable[[Any, str, Any], None]:
    def write_unless(message: Any, prefix: str, value: Any) -> None:
        if as_comparable(value) != default:
            write(message, prefix, value)

    return write_unless


def _convert(convert: Callable[[str, Any], Any], label: str, place: str, value: Any) -> Any:
    """Convert a value, or the items of a list or map."""
    if label == "repeated":
        return [convert(f"{place}[{position}]", item) for position, item in enumerate(value)]
    if label == "map":
        return {key: convert(f"{place}[{key!r}]", value[key]) for key in sorted(value)}
    return convert(place, value)


def _enum_form(kind: str) -> Form:
    """Return the form of an enum: its names without that of the enum, in lower case; texts of the other numbers."""
    prefix = re.compile("_?".join(kind) + "_", re.IGNORECASE)
    numbers = {prefix.sub("", name, count=1).lower(): number for name, number in ENUM_VALUES[kind].items()}
    names = {number: name for name, number in numbers.items()}

    def write(place: str, value: str) -> int:
        try:
            return numbers[value] if value in numbers else int(value)
        except ValueError:
            raise ValueError(f"{place}: must be one of {', '.join(numbers)}, got {value!r}") from None

    return Form(write, lambda _, number: names[number] if number in names else str(number))
