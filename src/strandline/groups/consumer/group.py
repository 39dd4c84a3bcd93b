"""A group of the consumer protocol (KIP-848): its epochs, its members, and who is responsible for which partition.

The group epoch grows with every change that calls for a new assignment; the assignment epoch is that of the newest
target assignment; each member's epoch follows as it reconciles. What is written here survives: `apply` takes it from
records, and nothing else changes it. The rest (sessions, refreshes that are due) is known to this coordinator alone.

Always true: a partition has at most one owner, who is responsible for it; a static member's instance id leads to one
member.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import Moment
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.consumer import offset_validation
from strandline.groups.consumer.counts import SubscriberCounts
from strandline.groups.consumer.group_records import group_tombstones
from strandline.groups.consumer.member import ConsumerGroupMember, OwnedPartitions, PartitionEpochs
from strandline.groups.group import CommitPartitionValidator, OffsetExpiration
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard

INITIAL_EPOCH = 1
"""Of a group and of its target, before there is any record of them."""
NO_EPOCH = -1


class ConsumerGroupState(enum.Enum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """Its target assignment is behind."""
    RECONCILING = "Reconciling"
    """A member is behind the target assignment."""
    STABLE = "Stable"
    DEAD = "Dead"


class ResolvedRegularExpression(NamedTuple):
    topics: frozenset[str]
    version: int
    """The end offset of the metadata image it was resolved against."""
    timestamp_ms: int


class ConsumerGroup:
    group_type = "consumer"
    protocol_type = "consumer"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        # What survives.
        self.group_epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = INITIAL_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ConsumerGroupMember] = {}
        self.target_assignment: dict[str, OwnedPartitions] = {}
        self.resolved_regular_expressions: dict[str, ResolvedRegularExpression] = {}
        self.has_subscription_metadata_record = False
        """Written before 4.1; it is removed with the next change."""
        # What follows from the above.
        self.static_members: dict[str, str] = {}
        """Instance id -> member id."""
        self.owners: dict[Uuid, dict[int, str]] = {}
        self.subscribed_topic_names = SubscriberCounts()
        self.subscribed_regular_expressions = SubscriberCounts()
        self.server_assignors = SubscriberCounts()
        self.classic_protocols = SubscriberCounts()
        """The protocols that its members who speak the classic protocol support."""
        self.classic_members_count = 0
        # What only this coordinator knows.
        self.metadata_refresh_requested = True
        self.regex_refresh_requested = True
        self.regex_refreshed_s = float("-inf")
        self.session_deadlines: dict[str, float] = {}
        """Of members that were heard from since their timer was set; monotonic seconds."""

    def copy(self) -> ConsumerGroup:
        """One on which a change can be tried: what survives, and what follows from it."""
        copied = ConsumerGroup(self.group_id)
        copied.group_epoch, copied.metadata_hash = self.group_epoch, self.metadata_hash
        copied.assignment_epoch, copied.assignment_timestamp_ms = self.assignment_epoch, self.assignment_timestamp_ms
        copied.members = self.members.copy()
        copied.target_assignment = self.target_assignment.copy()
        copied.resolved_regular_expressions = self.resolved_regular_expressions.copy()
        copied.has_subscription_metadata_record = self.has_subscription_metadata_record
        copied.static_members = self.static_members.copy()
        copied.owners = {topic_id: owners.copy() for topic_id, owners in self.owners.items()}
        copied.subscribed_topic_names = self.subscribed_topic_names.copy()
        copied.subscribed_regular_expressions = self.subscribed_regular_expressions.copy()
        copied.server_assignors = self.server_assignors.copy()
        copied.classic_protocols = self.classic_protocols.copy()
        copied.classic_members_count = self.classic_members_count
        return copied

    # Members

    def member(self, member_id: str) -> ConsumerGroupMember:
        """KafkaError (UNKNOWN_MEMBER_ID) if there is none."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return None if member_id is None else self.members[member_id]

    def owner(self, topic_id: Uuid, partition: int) -> str | None:
        """The id of the member who is responsible for this partition."""
        owners = self.owners.get(topic_id)
        return None if owners is None else owners.get(partition)

    def current_partition_epoch(self, topic_id: Uuid, partition: int) -> int:
        """The epoch of the member who is responsible for this partition; -1 if no member is."""
        owner = self.owner(topic_id, partition)
        return NO_EPOCH if owner is None else self.members[owner].member_epoch

    def subscribed_topics(self, member: ConsumerGroupMember) -> AbstractSet[str]:
        """The topics that a member wants by name or by a pattern; one that isn't resolved yet stands for none."""
        resolved = self.resolved_regular_expressions.get(member.subscribed_topic_regex)
        return member.subscribed_topic_names if resolved is None else member.subscribed_topic_names | resolved.topics

    def subscribed_topic_ids(self, member: ConsumerGroupMember, image: MetadataImage) -> frozenset[Uuid]:
        """Of those that exist."""
        names, topics = self.subscribed_topics(member), image.topics
        return frozenset([topics[name].topic_id for name in names if name in topics])

    def preferred_server_assignor(self, default: str) -> str:
        """The one that most members ask for."""
        return max(self.server_assignors, key=lambda name: (self.server_assignors[name], name), default=default)

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    # As all groups are seen

    def state_name(self) -> str:
        return self.state.value

    def is_empty(self) -> bool:
        return not self.members

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topic_names

    def offset_expiration(self) -> OffsetExpiration | None:
        return OffsetExpiration(since_ms=None)

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> CommitPartitionValidator | None:
        return offset_validation.validate_commit(
            self, member_id, group_instance_id, generation_or_epoch, is_transactional=is_transactional, version=version
        )

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        offset_validation.validate_fetch(self, member_id, member_epoch)

    def validate_offset_delete(self) -> None:
        """Whatever its state: offsets of topics that it is subscribed to are kept one by one."""

    def validate_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def extend_session(self, shard: GroupShard, member_id: str, at: Moment) -> None:
        """A commit is no heartbeat here."""

    def tombstones(self) -> list[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members, self.resolved_regular_expressions)

    # What records change

    def put_member(self, member: ConsumerGroupMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._forget(old, staying=member)
        self.members[member.member_id] = member
        self._claim(member.member_id, member.assigned_partitions)
        self._claim(member.member_id, member.partitions_pending_revocation)
        if old is None or old.subscribed_topic_names is not member.subscribed_topic_names:
            self.subscribed_topic_names.add(member.subscribed_topic_names)
        self.subscribed_regular_expressions.add(_regexes(member))
        self.server_assignors.add(_assignors(member))
        self.classic_protocols.add(_classic_protocols(member))
        self.classic_members_count += member.uses_classic_protocol
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._forget(member)
        self.session_deadlines.pop(member_id, None)

    def put_resolved_regular_expression(self, regex: str, resolved: ResolvedRegularExpression) -> None:
        self.remove_resolved_regular_expression(regex)
        self.resolved_regular_expressions[regex] = resolved
        self.subscribed_topic_names.add(resolved.topics)

    def remove_resolved_regular_expression(self, regex: str) -> None:
        resolved = self.resolved_regular_expressions.pop(regex, None)
        if resolved is not None:
            self.subscribed_topic_names.remove(resolved.topics)

    def _forget(self, member: ConsumerGroupMember, staying: ConsumerGroupMember | None = None) -> None:
        """Take out what follows from a member as it was; most changes leave its (perhaps many) topics as they are."""
        self._release(member.member_id, member.assigned_partitions)
        self._release(member.member_id, member.partitions_pending_revocation)
        if staying is None or staying.subscribed_topic_names is not member.subscribed_topic_names:
            self.subscribed_topic_names.remove(member.subscribed_topic_names)
        self.subscribed_regular_expressions.remove(_regexes(member))
        self.server_assignors.remove(_assignors(member))
        self.classic_protocols.remove(_classic_protocols(member))
        self.classic_members_count -= member.uses_classic_protocol
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]

    def _claim(self, member_id: str, partitions: PartitionEpochs) -> None:
        """The newest record has the last word:
        a compacted log may no longer have the record with which the former owner released it.
        """
        for topic_id, epochs in partitions.items():
            self.owners.setdefault(topic_id, {}).update(dict.fromkeys(epochs, member_id))

    def _release(self, member_id: str, partitions: PartitionEpochs) -> None:
        for topic_id, epochs in partitions.items():
            owners = self.owners.get(topic_id)
            if owners is None:
                continue
            for partition in epochs:
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                del self.owners[topic_id]

    # Invariants

    def check_invariants(self) -> None:
        """What must hold between two turns of the event loop; the simulator asks after each that changed the shard."""
        name, members = f"group {self.group_id}", self.members
        assert all(member.member_id == member_id for member_id, member in members.items()), f"{name}: {list(members)}"
        static = {
            member.instance_id: member_id for member_id, member in members.items() if member.instance_id is not None
        }
        assert self.static_members == static, (
            f"{name}: instance ids lead to {self.static_members}, members are {static}"
        )
        assert self.session_deadlines.keys() <= members.keys(), f"{name}: sessions of {list(self.session_deadlines)}"
        newest = max((member.member_epoch for member in members.values()), default=NO_EPOCH)
        assert newest <= self.assignment_epoch <= self.group_epoch, (
            f"{name}: member epoch {newest}, assignment epoch {self.assignment_epoch}, group epoch {self.group_epoch}"
        )
        self._check_owners(name)
        self._check_counts(name)

    def _check_owners(self, name: str) -> None:
        responsible: dict[Uuid, dict[int, str]] = {}
        for member_id, member in self.members.items():
            for partitions in (member.assigned_partitions, member.partitions_pending_revocation):
                for topic_id, epochs in partitions.items():
                    owners = responsible.setdefault(topic_id, {})
                    for partition in epochs:
                        owner = owners.setdefault(partition, member_id)
                        assert owner == member_id, f"{name}: {topic_id}-{partition} is both {owner}'s and {member_id}'s"
        assert self.owners == responsible, f"{name}: owners {self.owners}, responsible are {responsible}"

    def _check_counts(self, name: str) -> None:
        topics, regexes, assignors, protocols = (SubscriberCounts() for _ in range(4))
        for member in self.members.values():
            topics.add(member.subscribed_topic_names)
            regexes.add(_regexes(member))
            assignors.add(_assignors(member))
            protocols.add(_classic_protocols(member))
        for resolved in self.resolved_regular_expressions.values():
            topics.add(resolved.topics)
        assert self.subscribed_topic_names == topics, f"{name}: topics {self.subscribed_topic_names}, not {topics}"
        assert self.subscribed_regular_expressions == regexes, (
            f"{name}: patterns {self.subscribed_regular_expressions}, not {regexes}"
        )
        assert self.server_assignors == assignors, f"{name}: assignors {self.server_assignors}, not {assignors}"
        assert self.classic_protocols == protocols, f"{name}: protocols {self.classic_protocols}, not {protocols}"
        classic = sum(member.uses_classic_protocol for member in self.members.values())
        assert self.classic_members_count == classic, (
            f"{name}: {classic} classic members, not {self.classic_members_count}"
        )


def _regexes(member: ConsumerGroupMember) -> Iterable[str]:
    return (member.subscribed_topic_regex,) if member.subscribed_topic_regex else ()


def _assignors(member: ConsumerGroupMember) -> Iterable[str]:
    return () if member.server_assignor_name is None else (member.server_assignor_name,)


def _classic_protocols(member: ConsumerGroupMember) -> Iterable[str]:
    metadata = member.classic_member_metadata
    return () if metadata is None else [protocol.name for protocol in metadata.supported_protocols]
