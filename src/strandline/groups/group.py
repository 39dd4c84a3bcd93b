"""What offsets, listing and deletion need of a group, whichever protocol its members speak.

Always true: nothing here changes what survives; a group is changed by its own operations, and removed by its
tombstones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import Moment
from strandline.ids import Uuid

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard

CommitPartitionValidator = Callable[[str, Uuid, int], None]
"""Takes topic, topic id (zero: not known) and partition;
KafkaError if the member may not commit this one, and with it all.
"""


class OffsetExpiration(NamedTuple):
    """From when on the retention of a group's offsets counts."""

    since_ms: int | None
    """When the group became empty; None: from when each offset was committed."""


class GroupLike(Protocol):
    """ClassicGroup and ConsumerGroup."""

    @property
    def group_id(self) -> str: ...

    @property
    def group_type(self) -> str:
        """Kafka's: "classic" or "consumer"."""

    @property
    def protocol_type(self) -> str:
        """As ListGroups shows it: "consumer", or whatever the members of a classic group call it;
        "" for a simple group.
        """

    def state_name(self) -> str:
        """Kafka's: Empty, Stable, PreparingRebalance, Assigning, …"""

    def is_empty(self) -> bool:
        """It has no members: once its offsets are gone, so may it be."""

    def is_subscribed_to(self, topic: str) -> bool:
        """A member consumes it, so that its offsets neither expire nor may be deleted."""

    def offset_expiration(self) -> OffsetExpiration | None:
        """How offsets of topics that it isn't subscribed to expire; None: not in the state it is in."""

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> CommitPartitionValidator | None:
        """KafkaError if this member may not commit; None: it may commit whatever it likes.
        `version` is OffsetCommit's.
        """

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """KafkaError if this member may not fetch; the admin client says None and -1.
        Classic groups let every client fetch.
        """

    def validate_offset_delete(self) -> None:
        """KafkaError if no offset of the group may be deleted now."""

    def validate_delete(self) -> None:
        """KafkaError (NON_EMPTY_GROUP) if the group may not be deleted now."""

    def extend_session(self, shard: GroupShard, member_id: str, at: Moment) -> None:
        """A commit of this member was accepted.
        A classic group that is Stable or PreparingRebalance takes it for a heartbeat.
        """

    def tombstones(self) -> list[CoordinatorRecord]:
        """What removes the group, its offsets aside; also for a simple group, of which nothing was ever written."""
