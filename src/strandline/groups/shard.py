"""The groups and offsets of one partition of `__consumer_offsets`: whom a request is for, and what a record changes.

    outcome = shard.join_group(request, caller, at, answer)

Always true: what survives a change of coordinator is in the records, and only `replay` changes it; a group is a classic one or
one of the consumer protocol, never both. A group that has offsets exists.
"""

from __future__ import annotations

from typing import Any

from strandline.errors import ErrorCode, KafkaError
from strandline.groups import deleting, listing
from strandline.groups.classic import describing as classic_describing
from strandline.groups.classic import heartbeating as classic_heartbeating
from strandline.groups.classic import joining, leaving, syncing
from strandline.groups.classic import loading as classic_loading
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.consumer import describing as consumer_describing
from strandline.groups.consumer import describing_as_classic
from strandline.groups.consumer import heartbeating as consumer_heartbeating
from strandline.groups.consumer import replaying as consumer_replaying
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.member import JOIN_GROUP_MEMBER_EPOCH
from strandline.groups.migration import classic_members
from strandline.groups.offsets import committing, expiring, fetching
from strandline.groups.offsets import deleting as offset_deleting
from strandline.groups.offsets.offsets import NO_PRODUCER_ID, Offsets
from strandline.groups.outcome import Answer, Caller, Moment, Outcome
from strandline.groups.records import (
    ConsumerGroupMetadataKey,
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from strandline.groups.surroundings import Surroundings
from strandline.groups.timers import Timers
from strandline.metadata.image import MetadataImage

Group = ClassicGroup | ConsumerGroup


class Shard:
    def __init__(self, partition: int, surroundings: Surroundings) -> None:
        self.partition = partition
        self.surroundings = surroundings
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.timers = Timers()

    # Finding a group

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """The classic group of this id; KafkaError if there is one of the other kind."""
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
        return group

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """The group of the consumer protocol of this id; KafkaError if there is a classic one."""
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        return group

    def check_room(self, group_id: str) -> None:
        """POLICY_VIOLATION if this would be one group more than there may be (SEC-L10)."""
        groups_max = self.surroundings.config.group_coordinator_max_groups_per_partition
        if group_id not in self.groups and len(self.groups) >= groups_max:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"There are {groups_max} groups in this partition of __consumer_offsets already, which is the most "
                "(group.coordinator.max.groups.per.partition).",
            )

    # Members

    def join_group(self, request: Any, caller: Caller, at: Moment, answer: Answer) -> Outcome | None:
        if not request.member_id:
            self.check_room(request.group_id)
        if self._is_consumer(request.group_id):
            return classic_members.join(self, request, caller, at, answer)
        return joining.join(self, request, caller, at, answer)

    def sync_group(self, request: Any, caller: Caller, at: Moment, answer: Answer) -> Outcome | None:
        if self._is_consumer(request.group_id):
            return classic_members.sync(self, request, caller, at, answer)
        return syncing.sync(self, request, caller, at, answer)

    def heartbeat(self, request: Any, caller: Caller, at: Moment, answer: Answer) -> Outcome | None:
        if self._is_consumer(request.group_id):
            return classic_members.heartbeat(self, request, caller, at, answer)
        return classic_heartbeating.heartbeat(self, request, caller, at, answer)

    def leave_group(self, request: Any, caller: Caller, at: Moment, answer: Answer) -> Outcome | None:
        if self._is_consumer(request.group_id):
            return classic_members.leave(self, request, caller, at, answer)
        return leaving.leave(self, request, caller, at, answer)

    def consumer_group_heartbeat(self, request: Any, caller: Caller, at: Moment, answer: Answer) -> Outcome | None:
        if request.member_epoch == JOIN_GROUP_MEMBER_EPOCH:
            self.check_room(request.group_id)
        return consumer_heartbeating.heartbeat(self, request, caller, at, answer)

    def _is_consumer(self, group_id: str) -> bool:
        return isinstance(self.groups.get(group_id), ConsumerGroup)

    # Offsets

    def commit_offsets(self, request: Any, caller: Caller, at: Moment, answer: Answer) -> Outcome | None:
        if request.generation_id_or_member_epoch < 0:
            self.check_room(request.group_id)
        return committing.commit(self, request, caller, at, answer)

    def fetch_offsets(self, group: Any, require_stable: bool, caller: Caller, at: Moment) -> Any:
        """`group` is one OffsetFetchRequestGroup; the answer is the response's group. A read."""
        return fetching.fetch(self, group, require_stable, caller, at)

    def delete_offsets(self, request: Any, caller: Caller, at: Moment, answer: Answer) -> Outcome | None:
        return offset_deleting.delete(self, request, caller, at, answer)

    def expire_offsets(self, at: Moment) -> Outcome | None:
        """Offsets that nobody came back for, and empty groups without any; now and then."""
        return expiring.expire(self, at)

    # Views

    def describe_group(self, group_id: str, caller: Caller) -> Any:
        """One DescribedGroup of DescribeGroups. A read."""
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return describing_as_classic.described(self, group)
        return classic_describing.describe(self, group_id, caller)

    def describe_consumer_group(self, group_id: str, caller: Caller) -> Any:
        """One DescribedGroup of ConsumerGroupDescribe. A read."""
        return consumer_describing.describe(self, group_id, caller)

    def list_groups(self, states: frozenset[str], types: frozenset[str], caller: Caller) -> list[Any]:
        """ListedGroups whose state and type are asked for (empty: all), whatever case they are written in. A read."""
        return listing.list_groups(self, states, types, caller)

    def delete_group(self, group_id: str, at: Moment) -> list[CoordinatorRecord]:
        """The records that remove a group with its offsets; KafkaError if it may not be."""
        return deleting.delete(self, group_id, at)

    # News

    def metadata_changed(
        self, image: MetadataImage, deleted_topics: frozenset[tuple[str, bytes]], at: Moment
    ) -> Outcome | None:
        """There is a newer image, in which these topics (name, id) are no more."""
        consumer_heartbeating.metadata_changed(self, image, at)
        return expiring.topics_deleted(self, deleted_topics, at)

    # Life

    def replay(self, record: CoordinatorRecord, at_ms: int, producer_id: int = NO_PRODUCER_ID) -> None:
        """A record that was appended, or is read back. Offsets of a producer's transactional batch wait for its marker."""
        key, value = record
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            self.offsets.replay(key, value, producer_id)
            if value is not None and key.group not in self.groups:
                self._keep_offsets_of(key.group, at_ms)
        elif isinstance(key, GroupMetadataKey):
            assert value is None or isinstance(value, GroupMetadataValue)
            classic_loading.replay(self, key, value)
            self._keep_offsets_of(key.group, at_ms)
        else:
            consumer_replaying.replay(self, record)
            if isinstance(key, ConsumerGroupMetadataKey):
                self._keep_offsets_of(key.group_id, at_ms)

    def _keep_offsets_of(self, group_id: str, at_ms: int) -> None:
        """Who assigns partitions to itself needs no members, and who is about to change its protocol has none: a simple group."""
        if group_id not in self.groups and self.offsets.has(group_id):
            self.groups[group_id] = ClassicGroup(group_id, at_ms)

    def replay_marker(self, producer_id: int, *, commit: bool) -> None:
        """The end of a transaction."""
        self.offsets.end_transaction(producer_id, commit=commit)

    def loaded(self, at: Moment) -> Outcome | None:
        """Everything was read back: from now on members have to be heard from."""
        classic_loading.loaded(self, at)
        consumer_replaying.loaded(self, at)
        return None

    def unload(self) -> None:
        """This node coordinates these groups no more: whoever waits is answered with NOT_COORDINATOR."""
        classic_loading.unload(self)
        self.timers.clear()
