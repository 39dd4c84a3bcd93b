"""What `transactions` and `kafka-transactions` share: finding transactions that hang, and naming one to abort.

Always true: a transaction that its coordinator is still going to end is never called hanging (TXN-T39).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from strandline.cli.access.connection import value_of
from strandline.client.blocking import Admin
from strandline.client.flow.transaction_descriptions import AbortTransactionSpec, ActiveProducer, DescribedTransaction
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition

T = TypeVar("T")
BATCH_MAX = 500
"""How many topics or partitions one request names: a broker is not to be overwhelmed by a search."""
NO_COORDINATOR_EPOCH = 0
"""That of a producer whose first transaction hangs: no newer coordinator is fenced by it."""


class OpenTransaction(NamedTuple):
    """A transaction that is open at a partition."""

    partition: TopicPartition
    producer: ActiveProducer

    @property
    def spec(self) -> AbortTransactionSpec:
        producer = self.producer
        return abort_spec(self.partition, producer.producer_id, producer.producer_epoch, producer.coordinator_epoch)


def abort_spec(
    partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> AbortTransactionSpec:
    """What to abort, by numbers that a partition remembers (TXN-T40)."""
    return AbortTransactionSpec(partition, producer_id, producer_epoch, max(coordinator_epoch, NO_COORDINATOR_EPOCH))


def partitions_of(admin: Admin, topics: Sequence[str], node_id: int | None) -> list[TopicPartition]:
    """Of these topics, or of all (none named), internal ones too; with a node those that have a replica there."""
    names = list(topics) or [topic.name for topic in admin.list_topics(include_internal=True)]
    found = []
    for batch in _batches(names):
        for name, answer in sorted(admin.describe_topics(batch).items()):
            for partition in value_of(answer).partitions:
                if node_id is None or node_id in partition.replicas:
                    found.append((name, partition.partition))
    return found


def open_transactions(
    admin: Admin, partitions: Sequence[TopicPartition], node_id: int | None = None
) -> list[OpenTransaction]:
    """As the leaders remember them, or this node."""
    found = []
    for batch in _batches(partitions):
        for key, answer in sorted(admin.describe_producers(batch, node_id=node_id).items()):
            found += [
                OpenTransaction(key, producer)
                for producer in value_of(answer)
                if producer.current_txn_start_offset >= 0
            ]
    return found


def find_hanging(
    admin: Admin, partitions: Sequence[TopicPartition], node_id: int | None, *, silent_for_ms: int, now_ms: int
) -> list[OpenTransaction]:
    """Those without a record for longer than that, which no coordinator will end."""
    candidates = [
        transaction
        for transaction in open_transactions(admin, partitions, node_id)
        if now_ms - transaction.producer.last_timestamp > silent_for_ms
    ]
    known = _known_by_producer(admin, candidates)
    return [transaction for transaction in candidates if not _will_be_ended(transaction, known)]


def transaction_that_ends(admin: Admin, transaction: OpenTransaction) -> DescribedTransaction | None:
    """The transaction at its coordinator that this is part of, and that will end it; None if it hangs."""
    known = _known_by_producer(admin, [transaction])
    return known[transaction.producer.producer_id] if _will_be_ended(transaction, known) else None


def _known_by_producer(admin: Admin, transactions: Sequence[OpenTransaction]) -> dict[int, DescribedTransaction]:
    """What coordinators know of these, by producer id."""
    producer_ids = {transaction.producer.producer_id for transaction in transactions}
    if not producer_ids:
        return {}
    listings = {each.transactional_id: each for each in admin.list_transactions(producer_ids=sorted(producer_ids))}
    found = {}
    for transactional_id, answer in admin.describe_transactions(sorted(listings)).items():
        # One that is gone since it was listed will end nothing.
        if not isinstance(answer, KafkaError):
            found[listings[transactional_id].producer_id] = answer
        elif answer.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise answer
    return found


def _will_be_ended(transaction: OpenTransaction, known: Mapping[int, DescribedTransaction]) -> bool:
    described = known.get(transaction.producer.producer_id)
    return described is not None and transaction.partition in described.partitions


def find_open(admin: Admin, partition: TopicPartition, start_offset: int) -> OpenTransaction | None:
    """The transaction that began there."""
    for transaction in open_transactions(admin, [partition]):
        if transaction.producer.current_txn_start_offset == start_offset:
            return transaction
    return None


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for begin in range(0, len(items), BATCH_MAX):
        yield items[begin : begin + BATCH_MAX]
