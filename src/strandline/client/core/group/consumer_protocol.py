"""A member of a KIP-848 group: one request, ConsumerGroupHeartbeat (68), and an epoch.

    JOINING (epoch 0) -> STABLE            the coordinator assigns; the member brings what it owns into line with that, and says so
    any -> JOINING                         fenced: whatever it owned is lost, and it begins again under its member id

The answer names the target as far as the member may have it now: what is not in it is given up first, what is new in it
is free. What a heartbeat does not name has not changed since the last one; after any doubt about what arrived,
everything is named.

Always true: what is owned is reported to the coordinator at once after it changed; topics that only their ids are known
of are not owned, nor given up, before their names are learnt.
"""

from __future__ import annotations

import enum
import random
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.client.config import ConsumerConfig
from strandline.client.core.backoff import Backoff
from strandline.client.core.by_topic import by_topic
from strandline.client.core.cluster_metadata import ClusterMetadata
from strandline.client.core.group.member import (
    NEVER,
    TRY_AGAIN,
    AssignmentChange,
    AssignmentChangeKind,
    GroupCall,
    MemberCore,
)
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import TopicPartition, Uuid
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiResponse
    from strandline.wire.stubs.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )

CONSUMER_GROUP_HEARTBEAT: Final = 68
JOIN_EPOCH, LEAVE_EPOCH, LEAVE_FOR_A_WHILE_EPOCH = 0, -1, -2
FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
FIRST_INTERVAL_MS = 5_000
"""Until the coordinator says how often it wants to hear from us."""

TopicIdPartition = tuple[bytes, int]


class ConsumerMemberState(enum.Enum):
    JOINING = "to join, with epoch 0"
    STABLE = "a member, with an epoch"


class _Reported(NamedTuple):
    """What the coordinator knows from earlier heartbeats."""

    topics: frozenset[str]
    pattern: str | None
    owned: frozenset[TopicPartition] | None


class ConsumerMemberCore(MemberCore):
    def __init__(
        self, config: ConsumerConfig, cluster: ClusterMetadata, backoff: Backoff, randomness: random.Random
    ) -> None:
        super().__init__(config, cluster, backoff, randomness)
        self.member_id = str(Uuid.draw(randomness))
        self.state = ConsumerMemberState.JOINING
        self._reported: _Reported | None = None
        self._reporting: _Reported | None = None
        """What the heartbeat under way reports."""
        self._target: frozenset[TopicIdPartition] | None = None
        self._interval_ms = FIRST_INTERVAL_MS
        self._ids: dict[str, Uuid] = {}
        """Of the topics that something is or was owned of, as the coordinator meant them."""
        self._is_known = False
        """The coordinator may have a member of this id."""

    # What the application does

    def applied(self, change: AssignmentChange, now: float) -> None:
        super().applied(change, now)
        if change.kind is AssignmentChangeKind.ASSIGNED:
            self._ids |= {topic: self._cluster.topic_id(topic) for topic, _ in change.partitions}
        self._reconcile()

    # What the shell does

    def plan(self, now: float) -> GroupCall | None:
        if not self.is_active:
            return None
        if now >= self._poll_expires_at:
            self._is_left = True
            self._poll_expires_at = NEVER
            return self.leave()
        if now < self._retry_at:
            return None
        self._reconcile()
        if self.state is ConsumerMemberState.JOINING:
            return None if self.change() is not None else self._heartbeat()
        return self._heartbeat() if now >= self._heartbeat_at or self._has_changes else None

    @property
    def _has_changes(self) -> bool:
        """Something that the coordinator waits for, or should know."""
        reported = self._reported
        if reported is None or (reported.topics, reported.pattern) != (self.topics, self.pattern):
            return True
        return reported.owned != self.owned and self.change() is None

    def wakeup(self) -> float:
        if not self.is_active:
            return NEVER
        if self.state is ConsumerMemberState.JOINING:
            return self._poll_expires_at if self.change() is not None else min(self._retry_at, self._poll_expires_at)
        return min(self._retry_at, self._poll_expires_at) if self._has_changes else super().wakeup()

    def _heartbeat(self) -> GroupCall:
        is_full = self._reported is None or self.state is ConsumerMemberState.JOINING
        reported = _Reported(frozenset(), None, None) if self._reported is None else self._reported
        epoch = JOIN_EPOCH if self.state is ConsumerMemberState.JOINING else self.generation
        message = self._message(epoch)
        if is_full:
            message.rebalance_timeout_ms = self.config.max_poll_interval_ms
            message.server_assignor = self.config.group_remote_assignor
        if is_full or reported.topics != self.topics:
            message.subscribed_topic_names = sorted(self.topics)
        if (is_full and self.pattern is not None) or reported.pattern != self.pattern:
            message.subscribed_topic_regex = self.pattern or ""
        if is_full or (reported.owned != self.owned and self.change() is None):
            message.topic_partitions = self._owned_by_id()
            reported = reported._replace(owned=self.owned)
        self._reporting = _Reported(self.topics, self.pattern, reported.owned)
        self._is_known = True
        return GroupCall(CONSUMER_GROUP_HEARTBEAT, message, self._heartbeat_timeout_ms(self._interval_ms))

    def _message(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return messages.request(CONSUMER_GROUP_HEARTBEAT)(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.config.group_instance_id,
        )

    def _owned_by_id(self) -> list[ConsumerGroupHeartbeatRequest.TopicPartitions]:
        make = messages.request(CONSUMER_GROUP_HEARTBEAT).TopicPartitions
        return [
            make(topic_id=self._ids[topic], partitions=partitions)
            for topic, partitions in by_topic(sorted(self.owned)).items()
        ]

    def answered(self, call: GroupCall, response: ApiResponse, now: float) -> ErrorCode:
        asked = call.message
        assert isinstance(asked, messages.request(CONSUMER_GROUP_HEARTBEAT))
        assert isinstance(response, messages.response(CONSUMER_GROUP_HEARTBEAT))
        if asked.member_epoch < 0:
            return ErrorCode.NONE
        code = error_code(response.error_code)
        if code is not ErrorCode.NONE:
            self._refused(response, code, now)
            return code
        self._succeeded()
        self.state = ConsumerMemberState.STABLE
        self._reported = self._reporting
        self.member_id = response.member_id or self.member_id
        self.generation = response.member_epoch
        self._interval_ms = response.heartbeat_interval_ms or self._interval_ms
        self._heartbeat_at = now + self._interval_ms / 1000
        if response.assignment is not None:
            self._target = frozenset(
                (bytes(entry.topic_id), partition)
                for entry in response.assignment.topic_partitions
                for partition in entry.partitions
            )
            # It wants to hear that this is owned, even if it was before.
            assert self._reported is not None
            self._reported = self._reported._replace(owned=None)
        self._reconcile()
        return code

    def lost(self, call: GroupCall, now: float) -> None:
        """It may have arrived or not, so the next one says everything."""
        self._reported = None
        self._back_off(now)

    def epoch_changed(self) -> None:
        self._heartbeat_at = 0.0

    # Reconciling

    def _reconcile(self) -> None:
        """From what is owned towards the target, as far as its topics have names here."""
        if self._target is None or self._is_lost:
            return
        # By id: a topic that was made anew under the same name is another topic.
        self._revoking = frozenset(key for key in self.owned if (self._ids[key[0]], key[1]) not in self._target)
        names = self._cluster.names
        target = {(names[topic_id], partition) for topic_id, partition in self._target if topic_id in names}
        self._granted = frozenset(target - self.owned) or None

    @property
    def lacks_topics(self) -> bool:
        is_nameless = self._target is not None and any(key[0] not in self._cluster.names for key in self._target)
        return is_nameless or super().lacks_topics

    # What goes wrong

    def _refused(self, response: ConsumerGroupHeartbeatResponse, code: ErrorCode, now: float) -> None:
        self._reported = None
        if code in TRY_AGAIN:
            self._back_off(now)
        elif code in FENCED:
            self.fenced(code)
        else:
            self.failed(KafkaError(code, response.error_message or f"group '{self.group_id}'"))

    def fenced(self, code: ErrorCode) -> None:
        self._begin_again()

    def failed(self, error: KafkaError) -> None:
        super().failed(error)
        self._begin_again()

    def _begin_again(self) -> None:
        self._lose()
        self._target = self._reported = None
        self.state = ConsumerMemberState.JOINING

    def leave(self) -> GroupCall | None:
        """A static member leaves for a while: its partitions are kept until its session is over."""
        was_known, self._is_known = self._is_known, False
        self._begin_again()
        if not was_known:
            return None
        epoch = LEAVE_EPOCH if self.config.group_instance_id is None else LEAVE_FOR_A_WHILE_EPOCH
        return GroupCall(CONSUMER_GROUP_HEARTBEAT, self._message(epoch), self.config.request_timeout_ms)
