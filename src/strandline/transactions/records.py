"""The records of `__transaction_state`: Kafka's key and value, as Apache Kafka 4.3 reads and writes them (TXN-T6).

Always true: a record says all that survives a change of coordinator; a metadata of None removes the transactional id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import dataclass_transform

from strandline.coordinator.record import CoordinatorKey, CoordinatorRecord
from strandline.transactions.metadata import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TransactionMetadata
from strandline.wire.declared import Int8, Int16, Int32, Int64, String, tagged


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(tagged,))
def declared(cls: type) -> type:
    """A frozen dataclass: the key, the value, or a struct inside of it."""
    made: type = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    return made


@declared
class TransactionLogKey(CoordinatorKey):
    TYPE = 0
    VALUE = TransactionMetadata

    transactional_id: String


def transaction_record(transactional_id: str, metadata: TransactionMetadata | None) -> CoordinatorRecord:
    """What a transactional id is from now on; None: it is removed."""
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), metadata)


@declared
class TransactionLogTopic:
    topic: String
    partition_ids: tuple[Int32, ...]


@declared
class TransactionLogValue:
    producer_id: Int64
    previous_producer_id: Int64 = tagged(0, since=1, default=NO_PRODUCER_ID)
    next_producer_id: Int64 = tagged(1, since=1, default=NO_PRODUCER_ID)
    producer_epoch: Int16
    next_producer_epoch: Int16 = tagged(3, since=1, default=NO_PRODUCER_EPOCH)
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: tuple[TransactionLogTopic, ...] | None
    """None in Empty."""
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Int16 = tagged(2, since=1, default=0)
