"""What administration of transactions takes and gives: plain values under Kafka's names.

Always true: nothing here knows how it travels; what there is none of is None.
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.ids import TopicPartition


class TransactionListing(NamedTuple):
    transactional_id: str
    coordinator_id: int
    """The node that coordinates it."""
    producer_id: int
    state: str
    """Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, PrepareEpochFence."""


class DescribedTransaction(NamedTuple):
    """A transactional id, and its transaction if one is open or being ended."""

    transactional_id: str
    coordinator_id: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    """When its newest transaction began."""
    partitions: tuple[TopicPartition, ...]
    """Those that will get a marker and have none yet."""


class ActiveProducer(NamedTuple):
    """A producer that a replica remembers; numbers are -1 where there is none."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    """Of the last marker that ended a transaction of it."""
    current_txn_start_offset: int


class FencingEpoch(NamedTuple):
    """What a transactional id was given to fence its producer."""

    producer_id: int
    producer_epoch: int


class AbortTransactionSpec(NamedTuple):
    """A transaction at one partition that no coordinator will end."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    """At least that of the last marker; 0 fits if there was none."""
