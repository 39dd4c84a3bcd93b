"""One property of transactions, and what it is told: of a place, a record, a batch, a request.

Always true: a judge only looks; it raises Violation the first time that its property does not hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from strandline.histories.replica_observation import Key
from strandline.ids import TopicPartition
from strandline.node.observation.replicas import ObservedReplica
from strandline.transactions.metadata import TransactionMetadata

if TYPE_CHECKING:
    from strandline.histories.exchanges import BrokerExchange, CoordinatorExchange
    from strandline.histories.transactions.observation import TransactionObservation
    from strandline.histories.transactions.partition_log import (
        LoggedTransaction,
        PartitionTransactions,
        TransactionalBatch,
    )


class TransactionRecord(NamedTuple):
    """A record of `__transaction_state`; None: the id is removed."""

    transactional_id: str
    metadata: TransactionMetadata | None
    offset: int


class Place(NamedTuple):
    """A replica of a partition whose transactions are judged."""

    node_id: int
    key: Key
    name: TopicPartition
    replica: ObservedReplica

    def __str__(self) -> str:
        return f"{self.name[0]}-{self.name[1]}"


class TransactionJudge:
    """One property of transactions. It raises Violation; what it does not override it does not care for."""

    def data(
        self, seen: TransactionObservation, place: Place, batch: TransactionalBatch, before: LoggedTransaction | None
    ) -> None:
        """A leader has written a batch of this open transaction; None: it opens one."""

    def marker(
        self, seen: TransactionObservation, place: Place, batch: TransactionalBatch, ended: LoggedTransaction | None
    ) -> None:
        """A leader has written a marker, which ended that."""

    def kept(
        self,
        seen: TransactionObservation,
        place: Place,
        before: PartitionTransactions,
        batch: TransactionalBatch,
    ) -> None:
        """Any replica holds this batch after what it held before."""

    def changed(self, seen: TransactionObservation, place: Place, known: PartitionTransactions) -> None:
        """A replica is not as it was."""

    def appended(self, seen: TransactionObservation, node_id: int, record: TransactionRecord) -> None:
        """The newest coordinator has written this; it is not committed yet."""

    def committed(
        self, seen: TransactionObservation, record: TransactionRecord, before: TransactionMetadata | None
    ) -> None:
        """A record of a coordinator is committed."""

    def coordinates(self, seen: TransactionObservation, node_id: int, partition: int, epoch: int) -> None:
        """A node has a partition of `__transaction_state` in memory, as the coordinator of this epoch."""

    def asked(self, seen: TransactionObservation, exchange: CoordinatorExchange) -> None:
        """A request about a transaction has left its host."""

    def answered(self, seen: TransactionObservation, exchange: CoordinatorExchange) -> None:
        """Its answer has left the broker."""

    def fetched(self, seen: TransactionObservation, node_id: int, exchange: BrokerExchange) -> None:
        """A broker has answered a Fetch of a consumer."""

    def produced(self, seen: TransactionObservation, node_id: int, exchange: BrokerExchange) -> None:
        """A broker has answered a Produce that is part of a transaction."""

    def __repr__(self) -> str:
        return type(self).__name__
