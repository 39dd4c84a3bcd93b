"""A member of a classic group: JoinGroup (11), SyncGroup (14), Heartbeat (12), LeaveGroup (13), DescribeGroups (15).

    UNJOINED -> JOINING -> SYNCING -> STABLE      and from STABLE back to JOINING whenever the group rebalances
                        -> ASSIGNING -> SYNCING   for the leader, which decides who gets what once it knows the topics

Eager members give up all they own before they rejoin. Cooperative ones keep it, and give up only what the new
assignment takes from them; then they rejoin, so that it can be given to its new owner.

A static leader that comes back keeps the assignment, and asks who has what: a topic that grew while it was away has
partitions that no member reads, because none compared. And a cooperative leader that left partitions unassigned, so
that their owners give them up first, rejoins by itself if none of them does: a static one that dies in between comes
back without a rebalance.

Always true: heartbeats go on while the application is waited for; what was assigned but not yet given to the
application is forgotten by a rebalance; nothing that is to be given up is still owned when JoinGroup is sent.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import random
from typing import TYPE_CHECKING, Final

import re2

from strandline.client.config import ConsumerConfig
from strandline.client.core.backoff import Backoff
from strandline.client.core.cluster_metadata import ClusterMetadata
from strandline.client.core.group.assignors import ASSIGNORS, is_cooperative
from strandline.client.core.group.member import (
    NEVER,
    NO_GENERATION,
    NO_MEMBER,
    TRY_AGAIN,
    AssignmentChange,
    AssignmentChangeKind,
    GroupCall,
    MemberCore,
)
from strandline.client.core.group.subscription import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import TopicPartition
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiResponse
    from strandline.wire.stubs.describe_groups import DescribeGroupsResponse
    from strandline.wire.stubs.join_group import JoinGroupResponse
    from strandline.wire.stubs.sync_group import SyncGroupResponse

JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
DESCRIBE_GROUPS: Final = 15
PROTOCOL_TYPE = "consumer"
JOIN_LAPSE_MS = 5_000
"""The coordinator answers JoinGroup at the latest when the rebalance timeout is over; this much later we give up."""


class ClassicMemberState(enum.Enum):
    UNJOINED = "to join"
    JOINING = "JoinGroup is on its way; the coordinator waits for the others"
    ASSIGNING = "the leader has yet to learn of the topics that it is to assign"
    SYNCING = "SyncGroup is to be sent, or on its way"
    STABLE = "a member, with an assignment"


class ClassicMemberCore(MemberCore):
    def __init__(
        self, config: ConsumerConfig, cluster: ClusterMetadata, backoff: Backoff, randomness: random.Random
    ) -> None:
        super().__init__(config, cluster, backoff, randomness)
        self.state = ClassicMemberState.UNJOINED
        self.is_cooperative = is_cooperative(config.partition_assignment_strategy)
        self._wants_rejoin = False
        self._protocol = ""
        self._joined_with: frozenset[str] = frozenset()
        """The subscription that the group knows of."""
        self._led: dict[str, Subscription] = {}
        """Of a leader: the members of this generation."""
        self._keeps_assignment = False
        """Of a leader that came back under its instance id: the coordinator has the assignment still."""
        self._is_to_compare = False
        """Whether that leader has yet to see if the assignment has all partitions that there are now."""
        self._assigned_of: dict[str, int] | None = None
        """Of a leader: how many partitions each topic had when it assigned them."""
        self._is_incomplete = False
        """Of a leader: whether it left partitions unassigned, for their owners to give them up first."""
        self._complete_by = NEVER
        """When it rejoins, if no member does that had to give up a partition: at the heartbeat after that."""
        self._is_asked = False
        """Whether metadata was asked for since this generation began."""
        self._last: tuple[frozenset[TopicPartition], int] = (frozenset(), NO_GENERATION)
        """What it was last assigned, and in which generation."""

    # What the application does

    @property
    def is_rebalancing(self) -> bool:
        return self.state is not ClassicMemberState.STABLE and self.generation != NO_GENERATION

    def applied(self, change: AssignmentChange, now: float) -> None:
        super().applied(change, now)
        if change.kind is AssignmentChangeKind.REVOKED and self.is_cooperative:
            self._wants_rejoin = True  # so that it can be given to another member

    # What the shell does

    def plan(self, now: float) -> GroupCall | None:
        if not self.is_active or self.state is ClassicMemberState.JOINING:
            return None
        if now >= self._poll_expires_at:
            return self._leave_for_not_polling()
        if now < self._retry_at:
            return None
        self._look_around()
        if self.state is ClassicMemberState.STABLE:
            return self._plan_stable(now)
        if self.state is ClassicMemberState.UNJOINED:
            return None if self.change() is not None else self._join()
        if self._waits_for_metadata:
            return None
        self.state = ClassicMemberState.SYNCING
        return self._sync()

    def _plan_stable(self, now: float) -> GroupCall | None:
        if self._wants_rejoin or now >= self._complete_by:
            self._revoking |= self.owned if not self.is_cooperative else self._of_unsubscribed_topics()
            if not self._revoking & self.owned:
                return self._join()
        if now < self._heartbeat_at:
            return self._describe() if self._is_to_compare else None
        message = messages.request(HEARTBEAT)(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.config.group_instance_id,
        )
        return GroupCall(HEARTBEAT, message, self._heartbeat_timeout_ms(self.config.heartbeat_interval_ms))

    def _look_around(self) -> None:
        """Topics come, grow and go: a member whose subscription changes rejoins, and the leader does for the others."""
        if self.pattern is not None:
            self.topics = frozenset(
                topic.name
                for topic in self._cluster.topics.values()
                if not topic.is_internal and re2.fullmatch(self.pattern, topic.name)
            )
        if self.state is ClassicMemberState.STABLE:
            has_grown = self._assigned_of is not None and self._assigned_of != self._counts()
            self._wants_rejoin = self._wants_rejoin or has_grown or self.topics != self._joined_with

    def _of_unsubscribed_topics(self) -> frozenset[TopicPartition]:
        return frozenset(key for key in self.owned if key[0] not in self.topics)

    @property
    def wanted_topics(self) -> frozenset[str]:
        return self.topics | self._group_topics()

    def refreshed(self, topics: frozenset[str] | None) -> None:
        self._is_asked = topics is None or self.wanted_topics <= topics

    @property
    def _waits_for_metadata(self) -> bool:
        return self.state is ClassicMemberState.ASSIGNING and not self._is_asked and self.lacks_topics

    def wakeup(self) -> float:
        if not self.is_active:
            return NEVER
        if self.state is ClassicMemberState.STABLE:
            return super().wakeup()
        is_waiting = self._waits_for_metadata or (
            self.state is ClassicMemberState.UNJOINED and self.change() is not None
        )
        return self._poll_expires_at if is_waiting else min(self._retry_at, self._poll_expires_at)

    def answered(self, call: GroupCall, response: ApiResponse, now: float) -> ErrorCode:
        if call.api_key == LEAVE_GROUP:
            return ErrorCode.NONE
        if call.api_key == DESCRIBE_GROUPS:
            assert isinstance(response, messages.response(DESCRIBE_GROUPS))
            return self._described(response.groups, call, now)
        if call.api_key == JOIN_GROUP:
            assert isinstance(response, messages.response(JOIN_GROUP))
            return self._joined(call, response, now)
        if call.api_key == SYNC_GROUP:
            assert isinstance(response, messages.response(SYNC_GROUP))
            return self._synced(call, response, now)
        assert isinstance(response, messages.response(HEARTBEAT))
        code = error_code(response.error_code)
        if code is not ErrorCode.NONE:
            self._refused(call, code, now)
            return code
        self._succeeded()
        self._heartbeat_at = now + self.config.heartbeat_interval_ms / 1000
        return code

    def lost(self, call: GroupCall, now: float) -> None:
        """What the coordinator did is unknown: heartbeats and rejoining will show."""
        if call.api_key in (JOIN_GROUP, SYNC_GROUP):
            self._rejoin()
        self._back_off(now)

    # Joining

    def _join(self) -> GroupCall:
        self.state = ClassicMemberState.JOINING
        self._wants_rejoin = False
        self._granted = None
        self._led, self._assigned_of = {}, None
        self._is_incomplete, self._complete_by = False, NEVER
        self._is_asked = self._is_to_compare = False
        self._joined_with = self.topics
        Join = messages.request(JOIN_GROUP)
        message = Join(
            group_id=self.group_id,
            session_timeout_ms=self.config.session_timeout_ms,
            rebalance_timeout_ms=self.config.max_poll_interval_ms,
            member_id=self.member_id,
            group_instance_id=self.config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                Join.JoinGroupRequestProtocol(name=name, metadata=self._subscription(name))
                for name in self.config.partition_assignment_strategy
            ],
        )
        return GroupCall(JOIN_GROUP, message, self.config.max_poll_interval_ms + JOIN_LAPSE_MS)

    def _subscription(self, strategy: str) -> bytes:
        user_data = ASSIGNORS[strategy].user_data(*self._last)
        return encode_subscription(Subscription(self.topics, self.owned, self._last[1], user_data))

    def _joined(self, call: GroupCall, response: JoinGroupResponse, now: float) -> ErrorCode:
        code = error_code(response.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self._rejoin()
        elif code is not ErrorCode.NONE:
            self._refused(call, code, now)
        else:
            # What failed before may have been the SyncGroup that follows: nothing has gone well yet.
            self._take_generation(response)
        return code

    def _take_generation(self, response: JoinGroupResponse) -> None:
        self.member_id, self.generation = response.member_id, response.generation_id
        self._protocol = response.protocol_name or ""
        if self._protocol not in ASSIGNORS:
            self.failed(KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the group agreed on '{self._protocol}'"))
            return
        self.state = ClassicMemberState.SYNCING
        if response.leader == self.member_id:
            self._led = _subscriptions(response.members)
            self._keeps_assignment = self._is_to_compare = response.skip_assignment
            # One that keeps the assignment, too, has to know the topics as they are now, to notice when they grow.
            self.state = ClassicMemberState.ASSIGNING

    def _group_topics(self) -> frozenset[str]:
        return frozenset(topic for subscription in self._led.values() for topic in subscription.topics)

    def _counts(self) -> dict[str, int]:
        return {topic: self._cluster.partitions_count(topic) or 0 for topic in self._group_topics()}

    def _all_partitions(self) -> set[TopicPartition]:
        """As many as each topic had when the leader assigned them."""
        counts = self._assigned_of or {}
        return {(topic, index) for topic, count in counts.items() for index in range(count)}

    def _sync(self) -> GroupCall:
        Sync = messages.request(SYNC_GROUP)
        assigned: dict[str, list[TopicPartition]] = {}
        if self._led:
            self._assigned_of = self._counts()
        if self._led and not self._keeps_assignment:
            assigned = ASSIGNORS[self._protocol].assign(self._counts(), self._led)
            self._is_incomplete = not self._all_partitions() <= set(itertools.chain(*assigned.values()))
        message = Sync(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._protocol,
            assignments=[
                Sync.SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(partitions))
                for member_id, partitions in assigned.items()
            ],
        )
        return GroupCall(SYNC_GROUP, message, self.config.max_poll_interval_ms + JOIN_LAPSE_MS)

    def _synced(self, call: GroupCall, response: SyncGroupResponse, now: float) -> ErrorCode:
        code = error_code(response.error_code)
        if code is not ErrorCode.NONE:
            self._refused(call, code, now)
            return code
        self._succeeded()
        self._take_assignment(response.assignment, now)
        return code

    def _take_assignment(self, assignment: bytes, now: float) -> None:
        try:
            assigned = frozenset(decode_assignment(assignment))
        except MalformedRequest as error:
            self.failed(KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the leader's assignment: {error}"))
            return
        self.state = ClassicMemberState.STABLE
        self._heartbeat_at = now + self.config.heartbeat_interval_ms / 1000
        if self._is_incomplete:
            self._complete_by = now + self.config.session_timeout_ms / 1000
        self._last = (assigned, self.generation)
        self._revoking = self.owned - assigned
        self._granted = assigned - self.owned

    def _describe(self) -> GroupCall:
        message = messages.request(DESCRIBE_GROUPS)(groups=[self.group_id])
        return GroupCall(DESCRIBE_GROUPS, message, self._heartbeat_timeout_ms(self.config.heartbeat_interval_ms))

    def _described(self, groups: list[DescribeGroupsResponse.DescribedGroup], call: GroupCall, now: float) -> ErrorCode:
        """The group as it is in its coordinator. One that refuses is not asked again."""
        code = error_code(groups[0].error_code) if groups else ErrorCode.UNKNOWN_SERVER_ERROR
        if code in TRY_AGAIN:
            self.lost(call, now)
            return code
        self._is_to_compare = False
        if code is ErrorCode.NONE and self.state is ClassicMemberState.STABLE and self._assigned_of is not None:
            self._wants_rejoin = self._wants_rejoin or not self._all_partitions() <= _assigned(groups[0].members)
        return ErrorCode.NONE

    def _rejoin(self) -> None:
        """With the member id and the generation that it has, in case they still hold."""
        self.state = ClassicMemberState.UNJOINED

    # What goes wrong

    def _refused(self, call: GroupCall, code: ErrorCode, now: float) -> None:
        if code in TRY_AGAIN:
            self.lost(call, now)
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            if call.api_key == HEARTBEAT:
                self._wants_rejoin = True
                self._heartbeat_at = now + self.config.heartbeat_interval_ms / 1000
            else:
                self._rejoin()
        elif code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID):
            self.fenced(code)
        else:
            name = {JOIN_GROUP: "joining", SYNC_GROUP: "synchronizing", HEARTBEAT: "heartbeat of"}[call.api_key]
            self.failed(KafkaError(code, f"{name} group '{self.group_id}'"))

    def fenced(self, code: ErrorCode) -> None:
        if code is not ErrorCode.ILLEGAL_GENERATION:
            self.member_id = NO_MEMBER
        self._lose()
        self._wants_rejoin = False
        self._rejoin()

    def epoch_changed(self) -> None:
        if self.state is ClassicMemberState.STABLE:
            self._wants_rejoin = True

    def failed(self, error: KafkaError) -> None:
        super().failed(error)
        self.state = ClassicMemberState.UNJOINED

    # Leaving

    def _leave_for_not_polling(self) -> GroupCall | None:
        call = self.leave("the application did not poll for max.poll.interval.ms")
        self._is_left = True
        self._poll_expires_at = NEVER
        return call

    def leave(self, reason: str = "the consumer is being closed") -> GroupCall | None:
        """A static member stays: it is expected back."""
        member_id = self.member_id
        self.member_id = NO_MEMBER
        self._lose()
        self._rejoin()
        if member_id == NO_MEMBER or self.config.group_instance_id is not None:
            return None
        Leave = messages.request(LEAVE_GROUP)
        member = Leave.MemberIdentity(member_id=member_id, reason=reason)
        message = Leave(group_id=self.group_id, members=[member], member_id=member_id)
        return GroupCall(LEAVE_GROUP, message, self.config.request_timeout_ms)


def _subscriptions(members: list[JoinGroupResponse.JoinGroupResponseMember]) -> dict[str, Subscription]:
    """A member whose bytes cannot be read subscribes to nothing, so that the others get theirs."""
    subscriptions = {}
    for member in members:
        try:
            subscriptions[member.member_id] = decode_subscription(member.metadata, member.group_instance_id)
        except MalformedRequest:
            subscriptions[member.member_id] = Subscription(frozenset())
    return subscriptions


def _assigned(members: list[DescribeGroupsResponse.DescribedGroupMember]) -> set[TopicPartition]:
    """What the members have; of one whose bytes cannot be read, nothing."""
    assigned: set[TopicPartition] = set()
    for member in members:
        with contextlib.suppress(MalformedRequest):
            assigned.update(decode_assignment(member.member_assignment))
    return assigned
