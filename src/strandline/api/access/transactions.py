"""The transaction coordinator of this node, and the way to those of other nodes, as an API reaches them.

Always true: of `answer` and `refuse` one is called, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition

if TYPE_CHECKING:
    from strandline.coordinator.result import CoordinatorResult, Moment
    from strandline.transactions.metadata import ProducerIdAndEpoch
    from strandline.transactions.shard import TransactionShard

T = TypeVar("T")


class TransactionAccess(Protocol):
    def create_topic(self) -> None:
        """Have `__transaction_state` created, unless that is under way; its coordinators are there some time later."""

    @property
    def has_producer_id(self) -> bool:
        """One can be taken without waiting."""

    async def await_producer_id(self) -> None:
        """Until a producer id can be taken without waiting; KafkaError if there is none for now."""

    def write(
        self,
        transactional_id: str,
        operation: Callable[[TransactionShard, Moment], CoordinatorResult | None],
        refuse: Callable[[KafkaError], None],
    ) -> None:
        """Have something done that may change the state of a transactional id. What it raises goes to `refuse`, and that
        it can't be done here."""

    def read(
        self,
        transactional_id: str,
        operation: Callable[[TransactionShard, Moment], T],
        answer: Callable[[T], None],
        refuse: Callable[[KafkaError], None],
    ) -> None:
        """Look something up: `answer` gets it once it is committed."""

    def read_all(
        self,
        operation: Callable[[TransactionShard, Moment], list[T]],
        answer: Callable[[list[T]], None],
        refuse: Callable[[KafkaError], None],
    ) -> None:
        """The same of all transactional ids that this node coordinates."""

    async def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        *,
        verify_only: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Ask the coordinator, wherever it is, whether these partitions are part of the transaction, or have them added
        (TXN-V1)."""
