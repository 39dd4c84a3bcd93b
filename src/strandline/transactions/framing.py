"""The key and the value of a record in `__transaction_state`, from and to bytes (TXN-T6, TXN-T7).

Always true: the producer ids before and after this one are written from version 1 on, else a rotation would not survive a change
of coordinator; a key or a value of a version that we do not know is skipped, as Kafka does.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable
from functools import cache

from strandline.coordinator.record import CoordinatorRecord
from strandline.ids import TopicPartition
from strandline.transactions.metadata import NO_PRODUCER_ID, TransactionMetadata
from strandline.transactions.records import TransactionLogKey, TransactionLogTopic, TransactionLogValue
from strandline.transactions.states import TransactionState
from strandline.wire.codec import Buffer, Codec
from strandline.wire.declared import struct_of
from strandline.wire.errors import MalformedRequest

KEY_VERSION = 0
VERSIONS = range(2)
FLEXIBLE = 1
HEAD = struct.Struct(">h")


class MalformedTransactionRecord(MalformedRequest):
    """These bytes are not a record of a transaction."""


def value_version(record: CoordinatorRecord, transaction_version: int) -> int:
    """The version that a cluster at this level of `transaction.version` writes. Once the level is lowered, what version 0 can't
    say is written in version 1 nevertheless: the pair that a client was answered, and the level of a decision."""
    metadata = record.value
    if transaction_version == 0 and not (
        isinstance(metadata, TransactionMetadata)
        and (metadata.transaction_version or metadata.next_producer_id != NO_PRODUCER_ID)
    ):
        return 0
    return VERSIONS[-1]


class TransactionFraming:
    """Writes in the version that the cluster's level and the record ask for at that moment."""

    def __init__(self, transaction_version: Callable[[], int]) -> None:
        self._transaction_version = transaction_version

    def encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        return encode(record, value_version(record, self._transaction_version()))

    def decode(self, key: Buffer | None, value: Buffer | None) -> CoordinatorRecord | None:
        return decode(key, value)


def encode(record: CoordinatorRecord, version: int) -> tuple[bytes, bytes | None]:
    """The record's key and value; a tombstone has no value. struct.error if the transactional id is too long."""
    key = HEAD.pack(KEY_VERSION) + _key_codec().encode(record.key)
    if record.value is None:
        return key, None
    assert isinstance(record.value, TransactionMetadata)
    return key, HEAD.pack(version) + _value_codec(version).encode(_value(record.value))


def decode(key: Buffer | None, value: Buffer | None) -> CoordinatorRecord | None:
    """The record; None if its version is newer than we know."""
    if key is None:
        raise MalformedTransactionRecord("record without a key")
    found = decode_key(key)
    if found is None:
        return None
    if value is None:
        return CoordinatorRecord(found, None)
    _, decoded = decode_value(value)
    return None if decoded is None else CoordinatorRecord(found, _metadata(decoded))


def decode_key(key: Buffer) -> TransactionLogKey | None:
    """None if its version is newer than we know."""
    if _head(key, "key") != KEY_VERSION:
        return None
    found, _ = _key_codec().decode(bytes(key), HEAD.size)
    assert isinstance(found, TransactionLogKey)
    return found


def decode_value(value: Buffer) -> tuple[int, TransactionLogValue | None]:
    """The version, and the value as it stands in the log; None if we do not know that version."""
    version = _head(value, "value")
    if version not in VERSIONS:
        return version, None
    decoded, _ = _value_codec(version).decode(bytes(value), HEAD.size)
    assert isinstance(decoded, TransactionLogValue)
    return version, decoded


def _head(data: Buffer, part: str) -> int:
    if len(data) < HEAD.size:
        raise MalformedTransactionRecord(f"{part} of {len(data)} bytes, too short for its version")
    return int(HEAD.unpack_from(data)[0])


@cache
def _key_codec() -> Codec:
    return Codec(struct_of(TransactionLogKey, KEY_VERSION, flexible=False), KEY_VERSION)


@cache
def _value_codec(version: int) -> Codec:
    return Codec(struct_of(TransactionLogValue, version, flexible=version >= FLEXIBLE), version)


def _value(metadata: TransactionMetadata) -> TransactionLogValue:
    return TransactionLogValue(
        producer_id=metadata.producer_id,
        previous_producer_id=metadata.previous_producer_id,
        next_producer_id=metadata.next_producer_id,
        producer_epoch=metadata.epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state.value,
        transaction_partitions=(None if metadata.state is TransactionState.EMPTY else _by_topic(metadata.partitions)),
        transaction_last_update_timestamp_ms=metadata.update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
        client_transaction_version=metadata.transaction_version,
    )


def _by_topic(partitions: frozenset[TopicPartition]) -> tuple[TransactionLogTopic, ...]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(partitions):
        found[topic].append(partition)
    return tuple(TransactionLogTopic(topic=topic, partition_ids=tuple(ids)) for topic, ids in found.items())


def _metadata(value: TransactionLogValue) -> TransactionMetadata:
    try:
        state = TransactionState(value.transaction_status)
    except ValueError:
        raise MalformedTransactionRecord(f"no transaction has the status {value.transaction_status}") from None
    return TransactionMetadata(
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            (topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        update_ms=value.transaction_last_update_timestamp_ms,
        transaction_version=value.client_transaction_version,
    )
