"""Control records: what brokers and controllers write between the records of clients.

Key: version, type. A control batch holds what ends a transaction, opens a leader's epoch or frames a snapshot.
Always true: a type or version newer than we are is read as far as we know it, and never stops a reader.
"""

from __future__ import annotations

import enum
import struct
from typing import Final

from strandline.records.errors import InvalidRecord


class ControlRecordType(enum.IntEnum):
    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_KEY: Final = struct.Struct(">hh")
_END_TXN_MARKER: Final = struct.Struct(">hi")
_VERSION: Final = 0


EPOCH_MAX: Final = 32767
"""No client ever has it: it fences the last one that a client may have."""
EPOCH_BUMPING_VERSION: Final = 2
"""From this level of `transaction.version` on each transaction of a producer has an epoch of its own, and its end raises it."""


def control_key(kind: ControlRecordType) -> bytes:
    """The key of a control record of this type."""
    assert kind is not ControlRecordType.UNKNOWN
    return _KEY.pack(_VERSION, kind)


def read_control_type(key: bytes | None) -> ControlRecordType:
    """The type that a control record's key names; UNKNOWN for one that is newer than we are."""
    if key is None or len(key) < _KEY.size:
        raise InvalidRecord(f"A control record's key has at least {_KEY.size} bytes")
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"A control record's key cannot have version {version}")
    try:
        return ControlRecordType(kind)
    except ValueError:
        return ControlRecordType.UNKNOWN


def end_txn_marker(coordinator_epoch: int) -> bytes:
    """The value of an ABORT or COMMIT record."""
    return _END_TXN_MARKER.pack(_VERSION, coordinator_epoch)


def read_end_txn_marker(value: bytes | None) -> int:
    """The coordinator epoch in the value of an ABORT or COMMIT record."""
    if value is None or len(value) < _END_TXN_MARKER.size:
        raise InvalidRecord(f"An end transaction marker has at least {_END_TXN_MARKER.size} bytes")
    version, coordinator_epoch = _END_TXN_MARKER.unpack_from(value)
    if version < 0:
        raise InvalidRecord(f"An end transaction marker cannot have version {version}")
    return int(coordinator_epoch)
