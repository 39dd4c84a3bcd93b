"""What the judges see of a group: each request and answer as it leaves its host, and the shards of its coordinators.

Always true: looking changes nothing and draws no chance; a shard whose log has not grown is passed over. A
coordinator's epoch is the leader epoch of the group's partition of `__consumer_offsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar, cast

from strandline.api.groups.placement import partition_of
from strandline.client.core.group.subscription import decode_assignment
from strandline.errors import ErrorCode
from strandline.groups.shard import Group, GroupShard
from strandline.histories.coverage import GROUP
from strandline.histories.exchanges import (
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    JOIN_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
    CoordinatorExchange,
)
from strandline.histories.groups.plan import GroupPlan
from strandline.histories.member import ClusterMember
from strandline.histories.outcome import Problem
from strandline.histories.quorum_observation import QuorumObservation, Violation, overriding
from strandline.histories.replica_observation import Key, ReplicaObservation
from strandline.histories.transcript import Transcript
from strandline.ids import ZERO_UUID, Uuid
from strandline.node.coordinator.offsets_topic import CONSUMER_OFFSETS
from strandline.node.observation.shards import ObservedShard

STABLE = "Stable"


class NamesPartition(Protocol):
    @property
    def partition_index(self) -> int: ...


class CommittedPartition(NamesPartition, Protocol):
    @property
    def committed_offset(self) -> int: ...

    @property
    def error_code(self) -> int: ...


PartitionT = TypeVar("PartitionT", bound=NamesPartition)
PartitionT_co = TypeVar("PartitionT_co", bound=NamesPartition, covariant=True)


class NamesTopic(Protocol[PartitionT_co]):
    """Partitions of one topic, as a request or an answer about offsets has them."""

    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> Sequence[PartitionT_co]: ...


class FetchedGroupOffsets(Protocol):
    """What OffsetFetch answers of one group."""

    @property
    def error_code(self) -> int: ...

    @property
    def topics(self) -> Sequence[NamesTopic[CommittedPartition]]: ...


class ReportedAssignment:
    """The assignment of a member, as an answer of its coordinator has it."""

    __slots__ = ("at", "generation", "keys", "who")

    def __init__(self, who: str, generation: int, keys: frozenset[Key], at: float) -> None:
        self.who = who
        """Its instance id, or its member id."""
        self.generation = generation
        self.keys = keys
        self.at = at


class GroupJudge:
    """One property of groups. It raises Violation; what it does not override it does not care for."""

    def asked(self, observed: GroupObservation, exchange: CoordinatorExchange) -> None:
        """A request has left its host."""

    def answered(self, observed: GroupObservation, exchange: CoordinatorExchange) -> None:
        """Its answer has left the broker."""

    def assigned(self, observed: GroupObservation, assignment: ReportedAssignment) -> None:
        """An answer named all that a member has in a generation, or member epoch."""

    def deleted(self, observed: GroupObservation) -> None:
        """The group is gone: the generations of what comes under its name begin anew."""

    def shard_changed(self, observed: GroupObservation, node_id: int, shard: GroupShard) -> None:
        """A coordinator has replayed something."""

    def finished(self, observed: GroupObservation) -> Iterable[str]:
        """The history is over: what is not as it should be."""
        return ()

    def __repr__(self) -> str:
        return type(self).__name__


class GroupObservation:
    def __init__(
        self,
        plan: GroupPlan,
        observed: QuorumObservation,
        replicas: ReplicaObservation,
        judges: Sequence[GroupJudge],
        transcript: Transcript,
    ) -> None:
        self.group_id = plan.group_id
        self.replicas = replicas
        self.coordinator: tuple[int, int] | None = None
        """The newest: its epoch, and its node."""
        self.served_at: dict[str, float] = {}
        """By host: when the newest coordinator last answered that it is a member, or that something was committed."""
        self._observed = observed
        self._transcript = transcript
        self._judges = list(judges)
        self._asked = overriding(self._judges, GroupJudge, "asked")
        self._answered = overriding(self._judges, GroupJudge, "answered")
        self._assigned = overriding(self._judges, GroupJudge, "assigned")
        self._shard_changed = overriding(self._judges, GroupJudge, "shard_changed")
        self._holds: dict[str, dict[int, frozenset[Key]]] = {}
        """By member id of the consumer protocol, and member epoch: the last assignment that it got."""
        self._offsets_key: Key | None = None
        self._instances: dict[str, str] = {}
        """By member id."""
        self._generations: set[int] = set()
        self._group: tuple[type, bool] | None = None
        """As the newest coordinator has it: of which kind, and whether it is empty."""
        self._epochs: dict[int, int] = {}
        """By node: the last epoch in which it was the coordinator."""
        self._ends: dict[int, tuple[ObservedShard, int]] = {}
        """By node: its shard, and the log end at the last look."""

    @property
    def now(self) -> float:
        return self._observed.now()

    # Looking

    def look(self, member: ClusterMember) -> None:
        """After a turn of this node."""
        node = member.observed
        if node is None or not node.has_shards or (key := self.offsets_key) is None:
            return
        if (coordinated := node.shard(key[1])) is None:
            return
        self._epochs[member.id] = coordinated.leader_epoch
        shard, end = coordinated.shard, coordinated.log_end_offset
        if shard is not None and self._ends.get(member.id) != (coordinated, end):
            self._ends[member.id] = (coordinated, end)
            if coordinated.leader_epoch >= max(self._epochs.values()):
                self._see_group(shard.groups.get(self.group_id))
            for judge in self._shard_changed:
                self._judge(judge, member.id, lambda judge: judge.shard_changed(self, member.id, shard))

    def hear(self, exchange: CoordinatorExchange) -> None:
        if not self._is_ours(exchange):
            return
        if exchange.answered_at is None:
            for judge in self._asked:
                self._judge(judge, exchange.broker_id, lambda judge: judge.asked(self, exchange))
            return
        self._count(exchange)
        for judge in self._answered:
            self._judge(judge, exchange.broker_id, lambda judge: judge.answered(self, exchange))
        assignment = self._assignment_in(exchange)
        if assignment is not None:
            self._note_generation(assignment)
            for judge in self._assigned:
                self._judge(judge, exchange.broker_id, lambda judge: judge.assigned(self, assignment))

    def _see_group(self, group: Group | None) -> None:
        """Its generations begin anew once it was deleted, or became one of the other protocol while it was empty."""
        before = self._group
        kind = type(group)
        self._group = (kind, group is not None and group.is_empty())
        if before is not None and before[0] is not kind and (group is None or before[1]):
            self._holds.clear()
            self._generations.clear()
            for each in self._judges:
                each.deleted(self)

    def finish(self) -> list[Problem]:
        return [Problem(repr(judge), self.now, what) for judge in self._judges for what in judge.finished(self)]

    def _judge(self, judge: GroupJudge, node_id: int, event: Callable[[GroupJudge], None]) -> None:
        try:
            event(judge)
        except Violation as violation:
            self._observed.fail(judge, node_id, violation)

    def _is_ours(self, exchange: CoordinatorExchange) -> bool:
        request = exchange.request
        if exchange.api_key == DELETE_GROUPS:
            return self.group_id in request.groups_names
        if hasattr(request, "groups") and request.groups:
            return any(group.group_id == self.group_id for group in request.groups)
        return bool(request.group_id == self.group_id)

    # Assignments

    def _assignment_in(self, exchange: CoordinatorExchange) -> ReportedAssignment | None:
        request, response, at = exchange.request, exchange.response, exchange.answered_at or 0.0
        if exchange.api_key == SYNC_GROUP and not response.error_code:
            named = decode_assignment(response.assignment)
            keys = frozenset(key for each in named if (key := self._key(*each)) is not None)
            who = request.group_instance_id or request.member_id
            return ReportedAssignment(who, request.generation_id, keys, at)
        if exchange.api_key != CONSUMER_GROUP_HEARTBEAT or response.error_code:
            return None
        member_id = response.member_id or request.member_id
        if response.member_epoch <= 0:
            self._holds.pop(member_id, None)
            return None
        holds = self._holds.setdefault(member_id, {})
        if response.assignment is not None:
            holds[response.member_epoch] = frozenset(
                (Uuid(topic.topic_id), index)
                for topic in response.assignment.topic_partitions
                for index in topic.partitions
            )
        # Without an assignment it keeps what it had by that epoch; a former coordinator knows of no later one (seed 1000401).
        epoch = max((epoch for epoch in holds if epoch <= response.member_epoch), default=None)
        keys = frozenset[Key]() if epoch is None else holds[epoch]
        if request.instance_id:
            self._instances[member_id] = request.instance_id
        return ReportedAssignment(self.identity(member_id), response.member_epoch, keys, at)

    def identity(self, member_id: str) -> str:
        """Who comes back under an instance id is the same; only the first heartbeat need name it."""
        return self._instances.get(member_id, member_id)

    def _key(self, topic: str, index: int, topic_id: bytes = b"") -> Key | None:
        if topic_id and topic_id != ZERO_UUID:
            return Uuid(topic_id), index
        known = self.replicas.image.topics.get(topic)
        return None if known is None else (known.topic_id, index)

    def keys_of(self, topics: Iterable[NamesTopic[PartitionT]]) -> Iterator[tuple[Key, PartitionT]]:
        """The partitions that a request or answer about offsets names, by topic id."""
        for topic in topics:
            for partition in topic.partitions:
                key = self._key(topic.name, partition.partition_index, bytes(getattr(topic, "topic_id", b"") or b""))
                if key is not None:
                    yield key, partition

    def name(self, key: Key) -> str:
        topic = self.replicas.image.topics_by_id.get(key[0])
        return f"{key[0] if topic is None else topic.name}-{key[1]}"

    # Facts

    @property
    def offsets_key(self) -> Key | None:
        """The group's partition of the offsets topic, once there is one."""
        if self._offsets_key is None:
            topic = self.replicas.image.topics.get(CONSUMER_OFFSETS)
            if topic is not None:
                self._offsets_key = (topic.topic_id, partition_of(self.group_id, len(topic.partitions)))
        return self._offsets_key

    def epoch_of(self, node_id: int) -> int:
        """In which the node is, or was last, the group's coordinator."""
        return self._epochs.get(node_id, -1)

    def shard(self, node_id: int) -> ObservedShard | None:
        """The group's, where the node coordinates it or did so last."""
        known = self._ends.get(node_id)
        return None if known is None else known[0]

    def is_loaded(self, node_id: int) -> bool:
        """The node is a coordinator of the group that has read its log."""
        known = self._ends.get(node_id)
        return known is not None and known[0].shard is not None and known[0].leader_epoch == self._epochs[node_id]

    def is_stable(self) -> bool:
        """As the newest coordinator has it: every member has its target assignment."""
        node_id = max(self._epochs, key=self._epochs.__getitem__, default=None)
        known = None if node_id is None else self._ends.get(node_id)
        shard = None if known is None else known[0].shard
        group = None if shard is None else shard.groups.get(self.group_id)
        return group is not None and group.state_name() == STABLE

    @property
    def newest_generation(self) -> int:
        return max(self._generations, default=-1)

    # For the transcript and the coverage

    def _count(self, exchange: CoordinatorExchange) -> None:
        code = first_error(exchange)
        node_id, coverage = exchange.broker_id, self.replicas.coverage
        if code:
            if exchange.api_key in (OFFSET_COMMIT, SYNC_GROUP, JOIN_GROUP):
                name = {OFFSET_COMMIT: "commit", SYNC_GROUP: "sync", JOIN_GROUP: "join"}[exchange.api_key]
                coverage.note(GROUP, f"{name} refused: {ErrorCode(code).name}")
            return
        found = (self.epoch_of(node_id), node_id)
        if found[0] >= 0 and (self.coordinator is None or found > self.coordinator):
            if self.coordinator is not None:
                coverage.note(GROUP, "coordinator change" if found[1] != self.coordinator[1] else "coordinator again")
            self.coordinator = found
            self.served_at.clear()
            self._transcript.note(f"n{node_id}", f"coordinates {self.group_id} in epoch {found[0]}")
        if found == self.coordinator:
            self.served_at[exchange.who] = self.now
        if exchange.api_key == OFFSET_COMMIT:
            coverage.note(GROUP, "commit")

    def _note_generation(self, assignment: ReportedAssignment) -> None:
        if assignment.generation not in self._generations:
            self._generations.add(assignment.generation)
            if len(self._generations) > 1:
                self.replicas.coverage.note(GROUP, "rebalance")


def first_error(exchange: CoordinatorExchange) -> int:
    """Of the whole answer, or of what it says first that is an error."""
    response = exchange.response
    code = getattr(response, "error_code", 0)
    if code:
        return int(code)
    groups = getattr(response, "groups", None) or [response]
    for group in groups:
        if getattr(group, "error_code", 0):
            return int(group.error_code)
        for topic in getattr(group, "topics", None) or ():
            for partition in topic.partitions:
                if partition.error_code:
                    return int(partition.error_code)
    return 0


def committed_of(exchange: CoordinatorExchange, group_id: str) -> FetchedGroupOffsets | None:
    """The answer of an OffsetFetch about one group, whichever version it is."""
    for group in getattr(exchange.response, "groups", None) or ():
        if group.group_id == group_id:
            return cast(FetchedGroupOffsets, group)
    return cast(FetchedGroupOffsets, exchange.response) if exchange.request.group_id == group_id else None
