"""The bytes of `__transaction_state` (TXN-T6, TXN-T7). The examples were written by Apache Kafka 4.3's own classes."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from strandline.transactions import framing
from strandline.transactions.framing import MalformedTransactionRecord
from strandline.transactions.metadata import TransactionMetadata
from strandline.transactions.records import transaction_record
from strandline.transactions.states import TransactionState
from strandline.wire.errors import MalformedRequest

METADATA = TransactionMetadata(
    producer_id=9,
    previous_producer_id=8,
    next_producer_id=10,
    epoch=32767,
    last_epoch=32766,
    timeout_ms=60_000,
    state=TransactionState.PREPARE_COMMIT,
    partitions=frozenset({("a", 1), ("a", 0), ("b", 7)}),
    start_ms=1000,
    update_ms=2000,
    transaction_version=2,
    started_s=3.5,
)
KEY = bytes.fromhex("0000 0001 74")
VALUE_0 = bytes.fromhex(
    "0000 0000000000000009 7fff 0000ea60 02 00000002"
    "0001 61 00000002 00000000 00000001"
    "0001 62 00000001 00000007"
    "00000000000007d0 00000000000003e8"
)
VALUE_1 = bytes.fromhex(
    "0001 0000000000000009 7fff 0000ea60 02 03"
    "02 61 03 00000000 00000001 00"
    "02 62 02 00000007 00"
    "00000000000007d0 00000000000003e8"
    "03 00 08 0000000000000008 01 08 000000000000000a 02 02 0002"
)


@pytest.mark.parametrize(("version", "value"), [(0, VALUE_0), (1, VALUE_1)])
def test_txn_t6_bytes(version: int, value: bytes) -> None:
    assert framing.encode(transaction_record("t", METADATA), version) == (KEY, value)


def test_txn_t7_both_versions_are_read() -> None:
    found = framing.decode(KEY, VALUE_1)
    assert found == transaction_record("t", METADATA)
    assert found is not None
    assert isinstance(found.value, TransactionMetadata)
    assert (found.value.last_epoch, found.value.started_s) == (-1, float("inf"))
    old = framing.decode(KEY, VALUE_0)
    assert old is not None
    assert isinstance(old.value, TransactionMetadata)
    assert (old.value.previous_producer_id, old.value.next_producer_id) == (-1, -1)
    assert old.value.transaction_version == 0
    assert old.value.partitions == METADATA.partitions


def test_an_empty_one_has_no_partitions_at_all() -> None:
    empty = replace(METADATA, state=TransactionState.EMPTY, partitions=frozenset())
    _, value = framing.encode(transaction_record("t", empty), 0)
    assert value is not None
    assert struct.unpack_from(">i", value, 17) == (-1,)
    assert framing.decode(KEY, value) is not None


def test_a_tombstone() -> None:
    assert framing.encode(transaction_record("t", None), 1) == (KEY, None)
    assert framing.decode(KEY, None) == transaction_record("t", None)


def test_txn_t7_the_level_decides_what_is_written() -> None:
    plain = transaction_record("t", replace(METADATA, transaction_version=0, next_producer_id=-1))
    assert [framing.value_version(plain, level) for level in (0, 1, 2)] == [0, 1, 1]
    assert [framing.value_version(transaction_record("t", None), level) for level in (0, 1, 2)] == [0, 1, 1]


@pytest.mark.parametrize("changes", [{"transaction_version": 0}, {"next_producer_id": -1}])
def test_txn_t7_what_version_0_can_not_say_is_written_in_version_1_at_any_level(changes: dict[str, int]) -> None:
    assert framing.value_version(transaction_record("t", replace(METADATA, **changes)), 0) == 1  # type: ignore[arg-type]


def test_txn_t7_what_is_newer_is_skipped() -> None:
    assert framing.decode(b"\x00\x01\x00\x01t", VALUE_0) is None
    assert framing.decode(KEY, b"\x00\x02" + VALUE_1[2:]) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, VALUE_0), (b"", VALUE_0), (b"\x00", VALUE_0), (KEY, b""), (KEY, VALUE_1[:-3]), (KEY[:-1], VALUE_1)],
)
def test_damage_is_an_error(key: bytes | None, value: bytes) -> None:
    with pytest.raises(MalformedRequest):
        framing.decode(key, value)


def test_an_unknown_status_is_an_error() -> None:
    with pytest.raises(MalformedTransactionRecord, match="status 9"):
        framing.decode(KEY, VALUE_0[:16] + b"\x09" + VALUE_0[17:])
