"""The groups and offsets of one partition of `__consumer_offsets`: requests are dispatched to groups, records are
replayed.

    result = shard.join_group(request, caller, at, answer)

Always true: what survives a change of coordinator is in the records, and only `replay` changes it; a group is a classic
one or one of the consumer protocol, never both. A group that has offsets exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import Answer, CoordinatorResult, Moment
from strandline.coordinator.timers import CoordinatorTimers
from strandline.errors import ErrorCode, KafkaError
from strandline.groups import group_deletion, group_listing
from strandline.groups.caller import Caller
from strandline.groups.classic import description as classic_group_description
from strandline.groups.classic import heartbeat as classic_heartbeat
from strandline.groups.classic import join_group, leave_group, rebalance, sync_group
from strandline.groups.classic import replay as classic_replay
from strandline.groups.classic.group import DEAD, ClassicGroup
from strandline.groups.consumer import classic_description, member_fencing
from strandline.groups.consumer import description as consumer_group_description
from strandline.groups.consumer import heartbeat as consumer_heartbeat
from strandline.groups.consumer import replay as consumer_replay
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.member import JOIN_GROUP_MEMBER_EPOCH
from strandline.groups.dependencies import GroupDependencies
from strandline.groups.migration import classic_members
from strandline.groups.offsets import expiration, offset_commit, offset_fetch, txn_offset_commit
from strandline.groups.offsets import offset_delete as offset_delete
from strandline.groups.offsets.committed_offsets import NO_PRODUCER_ID, CommittedOffsets
from strandline.groups.records import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from strandline.log.verification_guards import VerificationGuard
from strandline.metadata.image import MetadataImage

if TYPE_CHECKING:
    from strandline.wire.stubs.consumer_group_describe import ConsumerGroupDescribeResponse
    from strandline.wire.stubs.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )
    from strandline.wire.stubs.describe_groups import DescribeGroupsResponse
    from strandline.wire.stubs.heartbeat import HeartbeatRequest, HeartbeatResponse
    from strandline.wire.stubs.join_group import JoinGroupRequest, JoinGroupResponse
    from strandline.wire.stubs.leave_group import LeaveGroupRequest, LeaveGroupResponse
    from strandline.wire.stubs.list_groups import ListGroupsResponse
    from strandline.wire.stubs.offset_commit import OffsetCommitRequest, OffsetCommitResponse
    from strandline.wire.stubs.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
    from strandline.wire.stubs.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
    from strandline.wire.stubs.sync_group import SyncGroupRequest, SyncGroupResponse
    from strandline.wire.stubs.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

Group = ClassicGroup | ConsumerGroup


class GroupShard:
    def __init__(self, partition: int, dependencies: GroupDependencies) -> None:
        self.partition = partition
        self.dependencies = dependencies
        self.groups: dict[str, Group] = {}
        self.offsets = CommittedOffsets()
        self.timers = CoordinatorTimers()

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
        groups_max = self.dependencies.config.group_coordinator_max_groups_per_partition
        if group_id not in self.groups and len(self.groups) >= groups_max:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"There are {groups_max} groups in this partition of __consumer_offsets already, which is the most "
                "(group.coordinator.max.groups.per.partition).",
            )

    # Members

    def join_group(
        self, request: JoinGroupRequest, caller: Caller, at: Moment, answer: Answer[JoinGroupResponse]
    ) -> CoordinatorResult | None:
        if not request.member_id:
            self.check_room(request.group_id)
        if self._is_consumer(request.group_id):
            return classic_members.join(self, request, caller, at, answer)
        return join_group.join(self, request, caller, at, answer)

    def sync_group(
        self, request: SyncGroupRequest, caller: Caller, at: Moment, answer: Answer[SyncGroupResponse]
    ) -> CoordinatorResult | None:
        if self._is_consumer(request.group_id):
            return classic_members.sync(self, request, caller, at, answer)
        return sync_group.sync(self, request, caller, at, answer)

    def heartbeat(
        self, request: HeartbeatRequest, caller: Caller, at: Moment, answer: Answer[HeartbeatResponse]
    ) -> CoordinatorResult | None:
        if self._is_consumer(request.group_id):
            return classic_members.heartbeat(self, request, caller, at, answer)
        return classic_heartbeat.heartbeat(self, request, caller, at, answer)

    def leave_group(
        self, request: LeaveGroupRequest, caller: Caller, at: Moment, answer: Answer[LeaveGroupResponse]
    ) -> CoordinatorResult | None:
        if self._is_consumer(request.group_id):
            return classic_members.leave(self, request, caller, at, answer)
        return leave_group.leave(self, request, caller, at, answer)

    def consumer_group_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        at: Moment,
        answer: Answer[ConsumerGroupHeartbeatResponse],
    ) -> CoordinatorResult | None:
        if request.member_epoch == JOIN_GROUP_MEMBER_EPOCH:
            self.check_room(request.group_id)
        return consumer_heartbeat.heartbeat(self, request, caller, at, answer)

    def _is_consumer(self, group_id: str) -> bool:
        return isinstance(self.groups.get(group_id), ConsumerGroup)

    # Offsets

    def commit_offsets(
        self, request: OffsetCommitRequest, caller: Caller, at: Moment, answer: Answer[OffsetCommitResponse]
    ) -> CoordinatorResult | None:
        if request.generation_id_or_member_epoch < 0:
            self.check_room(request.group_id)
        return offset_commit.commit(self, request, caller, at, answer)

    def commit_txn_offsets(
        self,
        request: TxnOffsetCommitRequest,
        guard: VerificationGuard | None,
        caller: Caller,
        at: Moment,
        answer: Answer[TxnOffsetCommitResponse],
    ) -> CoordinatorResult | None:
        """`guard`: from before the transaction's coordinator was asked; None if it needed no asking."""
        if request.generation_id < 0:
            self.check_room(request.group_id)
        return txn_offset_commit.commit(self, request, guard, caller, at, answer)

    def fetch_offsets(
        self, group: OffsetFetchRequest.OffsetFetchRequestGroup, require_stable: bool, caller: Caller, at: Moment
    ) -> OffsetFetchResponse.OffsetFetchResponseGroup:
        """`group` is one OffsetFetchRequestGroup; the answer is the response's group. A read."""
        return offset_fetch.fetch(self, group, require_stable, caller, at)

    def delete_offsets(
        self, request: OffsetDeleteRequest, caller: Caller, at: Moment, answer: Answer[OffsetDeleteResponse]
    ) -> CoordinatorResult | None:
        return offset_delete.delete(self, request, caller, at, answer)

    def expire_offsets(self, at: Moment) -> CoordinatorResult | None:
        """Removes offsets whose retention is over, and empty groups without any; called at intervals."""
        return expiration.expire(self, at)

    # Views

    def describe_group(self, group_id: str, caller: Caller) -> DescribeGroupsResponse.DescribedGroup:
        """One DescribedGroup of DescribeGroups. A read."""
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return classic_description.described(self, group)
        return classic_group_description.describe(self, group_id, caller)

    def describe_consumer_group(self, group_id: str, caller: Caller) -> ConsumerGroupDescribeResponse.DescribedGroup:
        """One DescribedGroup of ConsumerGroupDescribe. A read."""
        return consumer_group_description.describe(self, group_id, caller)

    def list_groups(
        self, states: frozenset[str], types: frozenset[str], caller: Caller
    ) -> list[ListGroupsResponse.ListedGroup]:
        """ListedGroups whose state and type are asked for (empty: all), whatever case they are written in. A read."""
        return group_listing.list_groups(self, states, types, caller)

    def delete_group(self, group_id: str, at: Moment) -> list[CoordinatorRecord]:
        """The records that remove a group with its offsets; KafkaError if it may not be."""
        return group_deletion.delete(self, group_id, at)

    # Metadata updates

    def metadata_changed(
        self, image: MetadataImage, deleted_topics: frozenset[tuple[str, bytes]], at: Moment
    ) -> CoordinatorResult | None:
        """There is a newer image, in which these topics (name, id) are no more."""
        consumer_heartbeat.metadata_changed(self, image, at)
        return expiration.topics_deleted(self, deleted_topics, at)

    # Life

    def replay(self, record: CoordinatorRecord, at_ms: int, producer_id: int = NO_PRODUCER_ID) -> None:
        """A record that was appended, or is read back.
        Offsets of a producer's transactional batch wait for its marker.
        """
        key, value = record
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            self.offsets.replay(key, value, producer_id)
            if value is not None and key.group not in self.groups:
                self.keep_offsets_of(key.group, at_ms)
        elif isinstance(key, GroupMetadataKey):
            assert value is None or isinstance(value, GroupMetadataValue)
            classic_replay.replay(self, key, value)
            self.keep_offsets_of(key.group, at_ms)
        else:
            consumer_replay.replay(self, record)
            if isinstance(key, ConsumerGroupMetadataKey):
                self.keep_offsets_of(key.group_id, at_ms)

    def keep_offsets_of(self, group_id: str, at_ms: int) -> None:
        """A consumer that assigns partitions itself is no member, and a group that is changing its protocol has none:
        a simple group.
        """
        if group_id not in self.groups and self.offsets.has(group_id):
            self.groups[group_id] = ClassicGroup(group_id, at_ms)

    def replay_marker(self, producer_id: int, *, commit: bool) -> None:
        """The end of a transaction."""
        self.offsets.end_transaction(producer_id, commit=commit)

    def loaded(self, at: Moment) -> CoordinatorResult | None:
        """Everything was read back: from now on members have to be heard from."""
        classic_replay.loaded(self, at)
        member_fencing.begin_sessions(self, at)
        return None

    def unload(self) -> None:
        """This node no longer coordinates these groups: waiting requests are answered with NOT_COORDINATOR."""
        classic_replay.unload(self)
        self.timers.clear()

    # Invariants

    def check_invariants(self) -> None:
        """What must hold between two turns of the event loop, apart from what each group checks for itself."""
        self.offsets.check_invariants()
        for group_id, group in self.groups.items():
            assert group.group_id == group_id, f"{group.group_id} is kept as {group_id}"
            if isinstance(group, ClassicGroup):
                assert group.state is not DEAD, f"{group} is still there"
                rebalance.check_timers(self, group)
        for group_id in self.offsets.groups():
            assert group_id in self.groups, f"group {group_id} has offsets, and does not exist"
