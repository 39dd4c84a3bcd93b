"""What administration of groups gives: plain values under Kafka's names.

Always true: nothing here knows how it travels; a value that the group's protocol does not have is None.
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.client.core.cluster_metadata import BrokerMetadata
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.ids import TopicPartition

__all__ = ["GroupDescription", "GroupListing", "MemberDescription", "OffsetAndMetadata"]

CLASSIC, CONSUMER = "Classic", "Consumer"
"""Types of groups, as Kafka's tools spell them."""


class GroupListing(NamedTuple):
    group_id: str
    protocol_type: str
    """`consumer`; empty for a group that has only committed offsets."""
    state: str
    """Empty, PreparingRebalance, CompletingRebalance, Stable, Dead; Assigning, Reconciling;
    "" if the broker does not say.
    """
    type: str
    """CLASSIC, CONSUMER, or another of the broker's types (Share, Streams); "" if it does not say."""


class MemberDescription(NamedTuple):
    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    """As the coordinator saw it: `/127.0.0.1`."""
    assignment: tuple[TopicPartition, ...]
    rack_id: str | None = None
    member_epoch: int | None = None
    target_assignment: tuple[TopicPartition, ...] | None = None
    is_classic: bool | None = None
    """A member of a KIP-848 group that still speaks the classic protocol; None if the broker does not say."""
    subscribed_topics: tuple[str, ...] | None = None
    subscribed_regex: str | None = None


class GroupDescription(NamedTuple):
    group_id: str
    type: str
    """CLASSIC or CONSUMER."""
    state: str
    protocol_type: str
    assignor: str
    """partition.assignment.strategy that was agreed on, or the server's assignor; "" while there is none."""
    coordinator: BrokerMetadata
    members: tuple[MemberDescription, ...]
    group_epoch: int | None = None
    assignment_epoch: int | None = None

    @property
    def is_simple(self) -> bool:
        """It has only committed offsets: no member ever joined it."""
        return self.type == CLASSIC and not self.protocol_type
