"""Records of `__transaction_state` as Kafka's tools print them: states by name, as since 4.4, no longer by number.

Always true: a record that cannot be read is named with its offset, and the next one is printed.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from strandline.cli.errors import CommandRefused
from strandline.cli.storage.dump.kafka_json import as_object, dumps
from strandline.records.record import Record
from strandline.wire.errors import MalformedRequest

if TYPE_CHECKING:
    from strandline.transactions.records import TransactionLogKey, TransactionLogValue
    from strandline.wire.structs import Struct

DELETED = "<DELETE>"


def as_transactions(record: Record) -> tuple[str | None, str | None]:
    """The text of a record's key and value (TXN-T6)."""
    from strandline.transactions import framing

    if record.key is None:
        raise CommandRefused(
            f"Failed to decode message at offset {record.offset} using the specified decoder (message had a missing key)"
        )
    try:
        key = framing.decode_key(record.key)
        if key is None:
            version = int.from_bytes(record.key[: framing.HEAD.size], "big", signed=True)
            return f"Unknown record type {version} at offset {record.offset}, skipping.", None
        return _key(key), DELETED if record.value is None else _value(*framing.decode_value(record.value))
    except MalformedRequest as error:
        return f"Error at offset {record.offset}, skipping. {error}", None


def _key(key: TransactionLogKey) -> str:
    from strandline.transactions.framing import KEY_VERSION

    # Numbers as text, as Kafka's tool prints them.
    return dumps({"type": str(KEY_VERSION), "data": as_object(_key_struct(), key)})


def _value(version: int, value: TransactionLogValue | None) -> str:
    from strandline.transactions.states import TransactionState

    if value is None:
        raise MalformedRequest(f"Found an unknown record version {version}")
    shown = as_object(_value_struct(version), value)
    try:
        shown["transactionStatus"] = TransactionState(value.transaction_status).label
    except ValueError:
        shown["transactionStatus"] = str(value.transaction_status)
    return dumps({"version": str(version), "data": shown})


@cache
def _key_struct() -> Struct:
    from strandline.transactions.framing import KEY_VERSION
    from strandline.transactions.records import TransactionLogKey
    from strandline.wire.declared import struct_of

    return struct_of(TransactionLogKey, KEY_VERSION, flexible=False)


@cache
def _value_struct(version: int) -> Struct:
    from strandline.transactions.framing import FLEXIBLE
    from strandline.transactions.records import TransactionLogValue
    from strandline.wire.declared import struct_of

    return struct_of(TransactionLogValue, version, flexible=version >= FLEXIBLE)
