"""Messages that know no version: one class per struct of a Kafka message, as in Kafka's own code.

An instance has every field that any version of the message has; a field that was not given, or that the version it was read
from does not have, has Kafka's default. Classes are built from the newest version; older versions add the fields and
structs that only they have when they are first needed.

Always true: a name that no version of the struct has is refused, in the constructor and when read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from strandline.wire.codec import Codec
from strandline.wire.schemas import Schema
from strandline.wire.structs import Field, Struct


class MessageType(type):
    """Finds structs that only older versions have: `response(9).OffsetFetchResponseTopic`."""

    _family: Family

    if not TYPE_CHECKING:  # mypy knows the structs from the stubs

        def __getattr__(cls, name: str) -> object:
            if not name.startswith("_") and cls._family.complete() and name in cls._family.classes:
                return cls._family.classes[name]
            raise AttributeError(f"{cls.__name__} has no struct {name}")


class Message(metaclass=MessageType):
    """Plain attributes, by Kafka's names in snake case. Defaults that cannot change live in the class."""

    _family: ClassVar[Family]
    _fields: ClassVar[dict[str, Field]]
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, **values: object) -> None:
        if not values.keys() <= self._fields.keys() and (
            not self._family.complete() or not values.keys() <= self._fields.keys()
        ):
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(values.keys() - self._fields.keys()))}")
        self.__dict__.update(values)

    if not TYPE_CHECKING:  # mypy knows the fields from the stubs

        def __getattr__(self, name: str) -> object:
            """Comes here only for what is in neither the instance nor its class: an array or a struct that was not given."""
            field = self._fields.get(name)
            if field is None:
                if not name.startswith("_") and self._family.complete() and name in self._fields:
                    return getattr(self, name)
                raise AttributeError(f"{type(self).__name__} has no {name}")
            value: object = [] if field.array or field.struct is None else self._family.classes[field.struct.name]()
            setattr(self, name, value)
            return value

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._fields)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({given})"


class Family:
    """One Kafka message: its classes, and a codec for each of its versions."""

    def __init__(self, schema: Schema) -> None:
        self.versions = schema.versions
        self.classes: dict[str, type[Message]] = {}
        self._schema = schema
        self._structs: dict[int, Struct] = {}
        self._codecs: dict[int, Codec] = {}
        self.root = self.classes[self.struct(self.versions[-1]).name]
        self._publish()

    def codec(self, version: int) -> Codec:
        """LookupError if the message has no such version."""
        codec = self._codecs.get(version)
        if codec is None:
            codec = self._codecs[version] = Codec(self.struct(version), version)
            self._publish()
        return codec

    def struct(self, version: int) -> Struct:
        if version not in self._structs:
            self._structs[version] = self._learn(self._schema.load(version))
        return self._structs[version]

    def complete(self) -> bool:
        """Learn what only older versions have; whether there was anything left to learn."""
        missing = [version for version in reversed(self.versions) if version not in self._structs]
        for version in missing:
            self.struct(version)
        self._publish()
        return bool(missing)

    def _learn(self, struct: Struct) -> Struct:
        """The same struct, with classes, which now have its fields."""
        cls = self.classes.get(struct.name)
        if cls is None:
            cls = MessageType(struct.name, (Message,), {"_family": self, "_fields": {}})  # type: ignore[assignment]
            self.classes[struct.name] = cls  # type: ignore[assignment]
        assert cls is not None
        fields = []
        for field in struct.fields:
            known = field if field.struct is None else replace(field, struct=self._learn(field.struct))
            fields.append(known)
            if cls._fields.setdefault(field.name, known) is known and field.default != ():
                setattr(cls, field.name, field.default)
        return replace(struct, cls=cls, fields=tuple(fields))

    def _publish(self) -> None:
        """Make nested structs attributes of the root's class."""
        for name, cls in self.classes.items():
            if cls is not self.root:
                setattr(self.root, name, cls)
