"""The group coordinator of this node, as an API reaches it.

Always true: of `answer` and `refuse` one is called, once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition

if TYPE_CHECKING:
    from strandline.coordinator.result import CoordinatorResult, Moment
    from strandline.groups.shard import GroupShard
    from strandline.log.verification_guards import VerificationGuard

T = TypeVar("T")


class NotedQuestion(NamedTuple):
    """What the coordinator of a transaction is to be asked before offsets are written in it."""

    partition: TopicPartition
    """Of `__consumer_offsets`, where the group is."""
    guard: VerificationGuard | None
    """None: the transaction has offsets there already, so there is nothing to ask."""


class GroupAccess(Protocol):
    def create_topic(self) -> None:
        """Have `__consumer_offsets` created, unless that is under way; its coordinators are there some time later."""

    def write(
        self,
        group_id: str,
        operation: Callable[[GroupShard, Moment], CoordinatorResult | None],
        refuse: Callable[[KafkaError], None],
    ) -> None:
        """Have something done that may change the group. What it raises goes to `refuse`, and that it can't be done
        here."""

    def read(
        self,
        group_id: str,
        operation: Callable[[GroupShard, Moment], T],
        answer: Callable[[T], None],
        refuse: Callable[[KafkaError], None],
    ) -> None:
        """Look something up: `answer` gets it once it is committed."""

    def read_all(
        self,
        operation: Callable[[GroupShard, Moment], list[T]],
        answer: Callable[[list[T]], None],
        refuse: Callable[[KafkaError], None],
    ) -> None:
        """The same of all groups that this node coordinates."""

    def note_question(self, group_id: str, producer: tuple[int, int], *, bumps_epoch: bool) -> NotedQuestion:
        """Note that the coordinator of a producer's transaction is asked about the group's partition (TXN-V2).
        KafkaError if the group is not coordinated here, or the producer's epoch is an old one."""

    def write_marker(
        self,
        partition_index: int,
        producer: tuple[int, int],
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        done: Callable[[ErrorCode], None],
    ) -> None:
        """End a producer's transaction in a partition of `__consumer_offsets`: `done` is called once, with NONE when the
        marker is committed and offsets are what it makes of them (TXN-T35)."""
