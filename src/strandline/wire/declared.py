"""Structs that we declare ourselves, as dataclasses, where kio has none: the records that Kafka keeps in its own topics.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class TopicRecord:
        name: String
        topic_id: Id

`since(version, default)` marks a field that later versions added, `tagged(tag, default)` one that is sent only if it differs.

Always true: a declaration says everything about the bytes; an array is a tuple, and may be None only if its type says so.
"""

from __future__ import annotations

import dataclasses
from types import NoneType, UnionType
from typing import Annotated, TypeVar, Union, get_args, get_origin, get_type_hints

from strandline.ids import Uuid
from strandline.wire.structs import Field, Struct

T = TypeVar("T")

Bool = Annotated[bool, "bool"]
Int8 = Annotated[int, "int8"]
Int16 = Annotated[int, "int16"]
UInt16 = Annotated[int, "uint16"]
Int32 = Annotated[int, "int32"]
Int64 = Annotated[int, "int64"]
Float64 = Annotated[float, "float64"]
Id = Annotated[Uuid, "uuid"]
String = Annotated[str, "string"]
Bytes = Annotated[bytes, "bytes"]


def since(version: int, default: T) -> T:
    """A field that exists from this version on."""
    return dataclasses.field(default=default, metadata={"since": version})


def tagged(tag: int, default: T, since: int = 0, *, null_is_sent: bool = False) -> T:
    """A tagged field that exists from this version on.

    `null_is_sent`: a struct for whose absence Kafka takes one with all defaults, so that None has to be said.
    """
    return dataclasses.field(default=default, metadata={"tag": tag, "since": since, "null_is_sent": null_is_sent})


def struct_of(cls: type, version: int, flexible: bool) -> Struct:
    """What instances of this dataclass look like in this version."""
    assert dataclasses.is_dataclass(cls)
    hints = get_type_hints(cls, include_extras=True)
    fields = [field for field in dataclasses.fields(cls) if field.metadata.get("since", 0) <= version]
    return Struct(
        cls.__name__, flexible, tuple(_field(field, hints[field.name], version, flexible) for field in fields), cls
    )


def _field(field: dataclasses.Field[object], hint: object, version: int, flexible: bool) -> Field:
    nullable = get_origin(hint) in (UnionType, Union)
    if nullable:
        (hint,) = (arg for arg in get_args(hint) if arg is not NoneType)
    array = get_origin(hint) is tuple
    if array:
        hint = get_args(hint)[0]
    struct = struct_of(hint, version, flexible) if dataclasses.is_dataclass(hint) and isinstance(hint, type) else None
    return Field(
        name=field.name,
        type="struct" if struct is not None else get_args(hint)[1],
        default=_default(field),
        array=array,
        nullable=nullable,
        tag=field.metadata.get("tag"),
        struct=struct,
    )


def _default(field: dataclasses.Field[object]) -> object:
    if field.metadata.get("null_is_sent"):
        return ()
    return None if field.default is dataclasses.MISSING else field.default
