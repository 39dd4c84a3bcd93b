"""Messages and metadata records as the JSON that Kafka's tools print.

Always true: keys in the order of the fields, names in camel case, no spaces; a tagged field appears only if it differs from its
default; bytes are base64, ids are Kafka's text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable

from strandline.ports import Buffer
from strandline.wire.structs import Field, Struct


def of_message(struct: Struct, message: object) -> str:
    return dumps(as_object(struct, message))


def of_metadata_record(value: bytes | None) -> str:
    """A record of `__cluster_metadata`: its type, version and fields."""
    from strandline.metadata.framing import decode
    from strandline.wire.declared import struct_of

    record, version = decode(value or b"")
    name = type(record).__name__
    struct = struct_of(type(record), version, flexible=True)
    return dumps({"type": type_name(name), "version": version, "data": as_object(struct, record)})


def type_name(class_name: str) -> str:
    """`RegisterBrokerRecord` is REGISTER_BROKER_RECORD."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_name).upper()


def dumps(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def as_object(struct: Struct, message: object) -> dict[str, object]:
    shown = {}
    for field in struct.fields:
        value = getattr(message, field.name)
        if field.tag is not None and _is_default(field, value):
            continue
        shown[_camel(field.name)] = _value(field, value)
    return shown


def _is_default(field: Field, value: object) -> bool:
    default = field.default
    if field.array and not field.nullable:
        return not value
    if field.array and default is not None:
        return value is not None and list(value) == list(default)  # type: ignore[call-overload]
    return bool(value == default)


def _value(field: Field, value: object) -> object:
    if value is None:
        return None
    if field.array:
        assert isinstance(value, Iterable)
        return [_single(field, element) for element in value]
    return _single(field, value)


def _single(field: Field, value: object) -> object:
    if field.struct is not None:
        return as_object(field.struct, value)
    if field.type in ("bytes", "records"):
        assert isinstance(value, Buffer)
        return base64.b64encode(value).decode()
    return str(value) if field.type == "uuid" else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)
