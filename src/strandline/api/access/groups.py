"""The group coordinator of this node, as an API reaches it.

Always true: of `answer` and `refuse` one is called, once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from strandline.errors import KafkaError

if TYPE_CHECKING:
    from strandline.coordinator.result import CoordinatorResult, Moment
    from strandline.groups.shard import GroupShard

T = TypeVar("T")


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
