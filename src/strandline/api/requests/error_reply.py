"""The reply to a request that failed as a whole, for any API: its error at the top, or at each thing that was asked for.

A response with an error of its own gets it there. One that has only errors of its items (topics, resources, ...) gets an item
for each that the request named, with the fields that identify it: those that both have under the same name.

Always true: the reply is of the version that was asked in, and names every item of the request once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, cast

from strandline.errors import ErrorCode
from strandline.sliced_work import Work, finished
from strandline.wire import messages
from strandline.wire.message import Message
from strandline.wire.structs import Field, Struct

if TYPE_CHECKING:
    from strandline.wire.stubs.alter_user_scram_credentials import AlterUserScramCredentialsRequest

ALTER_USER_SCRAM_CREDENTIALS = 51


def error_reply(
    api_key: int, version: int, request: Message, code: ErrorCode, message: str | None = None
) -> bytes | None:
    """The body of the reply; None if this version has no place for an error."""
    return finished(error_reply_in_slices(api_key, version, request, code, message))


def error_reply_in_slices(
    api_key: int, version: int, request: Message, code: ErrorCode, message: str | None = None
) -> Work[bytes | None]:
    """The same, pausing after each item."""
    family = messages.response_family(api_key)
    root = family.struct(version)
    error = {"error_code": code, "error_message": message}
    names = {field.name for field in root.fields}
    if "error_code" in names:
        given = {name: value for name, value in error.items() if name in names}
        return messages.encode_response(api_key, version, family.root(**given))
    for field in root.fields:
        if (
            field.array
            and field.struct is not None
            and any(inner.name == "error_code" for inner in field.struct.fields)
        ):
            items = []
            for asked in _asked(api_key, version, request):
                items.append(_item(family.classes, field.struct, asked, error))
                yield 0
            return (yield from messages.encode_response_in_slices(api_key, version, family.root(**{field.name: items})))
    return None


def _asked(api_key: int, version: int, request: Message) -> Iterable[Mapping[str, object]]:
    """What the request names: the items of its first array in this version. Plain texts are names."""
    if api_key == ALTER_USER_SCRAM_CREDENTIALS:
        # It names users in two lists, and its answer has one, of users.
        altered = cast("AlterUserScramCredentialsRequest", request)
        names = [*(each.name for each in altered.deletions), *(each.name for each in altered.upsertions)]
        return ({"user": name} for name in dict.fromkeys(names))
    for field in messages.request_family(api_key).struct(version).fields:
        if field.array:
            return (
                {"name": item} if isinstance(item, str) else vars(item) for item in getattr(request, field.name) or ()
            )
    return ()


def _item(
    classes: Mapping[str, type[Message]], struct: Struct, asked: Mapping[str, object], error: Mapping[str, object]
) -> Message:
    values = {field.name: _copy(classes, field, asked[field.name]) for field in struct.fields if field.name in asked}
    values |= {field.name: error[field.name] for field in struct.fields if field.name in error}
    return classes[struct.name](**values)


def _copy(classes: Mapping[str, type[Message]], field: Field, value: object) -> object:
    """A request's value as the response's type: their structs have the same fields and other classes."""
    if field.struct is None or value is None:
        return value
    if field.array and isinstance(value, Iterable):
        return [_item(classes, field.struct, vars(item), {}) for item in value]
    return _item(classes, field.struct, vars(value), {})


def contains_error(message: object, code: ErrorCode) -> bool:
    """Whether this error stands anywhere in a message."""
    return code in errors_in(message)


def errors_in(message: object) -> list[int]:
    """Every error code that stands anywhere in a message and is not NONE."""
    return finished(errors_in_slices(message)) if isinstance(message, Message) else []


def errors_in_slices(message: Message) -> Work[list[int]]:
    """The same, pausing after every message that is part of it. Every reply is looked through: it must cost little."""
    found: list[int] = []
    yield from _collect(message, found)
    return found


def _collect(message: Message, found: list[int]) -> Work[None]:
    for name, value in message.__dict__.items():
        if value.__class__ is list:
            # A list has things of one type: if the first one is no message, none is.
            if value and isinstance(value[0], Message) and _may_contain_error(value[0].__class__):
                for item in value:
                    yield from _collect(item, found)
        elif name == "error_code":
            if value:
                found.append(value)
        elif isinstance(value, Message):
            yield from _collect(value, found)
    yield 0


@cache
def _may_contain_error(cls: type[Message]) -> bool:
    """Whether such a message, or one inside it, has a place for an error."""
    return any(map(_field_may_contain_error, cls._fields.values()))


def _field_may_contain_error(field: Field) -> bool:
    return field.name == "error_code" or (
        field.struct is not None and any(map(_field_may_contain_error, field.struct.fields))
    )
