"""A classic group: its members, its generation, and the state of its rebalance.

    Empty -> PreparingRebalance     the first member joins
    PreparingRebalance -> CompletingRebalance     every member has joined, or the time to join is over
    CompletingRebalance -> Stable     the leader's assignment is committed
    Stable, CompletingRebalance -> PreparingRebalance     a member came, left, failed, or changed what it supports
    PreparingRebalance -> Empty     no member has joined
    any -> Dead     the group was deleted, became one of the other protocol, or is coordinated by another node

Always true: the members have a protocol in common; a group instance id stands for one member; the memory is ahead of
the log, which learns of a generation when its assignment is there.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import Answer, Moment
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.classic import responses
from strandline.groups.classic.member import ClassicMember, subscribed_topics
from strandline.groups.group import CommitPartitionValidator, OffsetExpiration
from strandline.groups.records import GroupMetadataKey
from strandline.wire.errors import MalformedRequest

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.join_group import JoinGroupResponse
    from strandline.wire.stubs.sync_group import SyncGroupResponse

CONSUMER_PROTOCOL_TYPE = "consumer"


class ClassicGroupState(enum.Enum):
    """By the names Kafka shows."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicGroupState

REACHED_FROM = {
    EMPTY: (PREPARING_REBALANCE,),
    PREPARING_REBALANCE: (STABLE, COMPLETING_REBALANCE, EMPTY),
    COMPLETING_REBALANCE: (PREPARING_REBALANCE,),
    STABLE: (COMPLETING_REBALANCE,),
    DEAD: tuple(ClassicGroupState),
}


class ClassicGroup:
    def __init__(
        self,
        group_id: str,
        state_since_ms: int | None = None,
        *,
        state: ClassicGroupState = EMPTY,
        generation_id: int = 0,
        protocol_type: str = "",
        protocol_name: str | None = None,
        leader_id: str | None = None,
        members: Iterable[ClassicMember] = (),
    ) -> None:
        self.group_id = group_id
        self.state = state
        self.previous_state = DEAD
        self.state_since_ms = state_since_ms
        """Wall clock; None: not in old versions of the record."""
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        """Of the last members; "" for a simple group, which is no more than its offsets."""
        self.protocol_name = protocol_name
        self.leader_id = leader_id
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by group instance id."""
        self.pending_join: set[str] = set()
        """Ids that were given out, and not joined with."""
        self.pending_sync: set[str] = set()
        self.new_member_added = False
        """While an empty group waits for its first members: one more came."""
        self._awaiting_join_count = 0
        self._supporters: Counter[str] = Counter()
        self._topics: frozenset[str] | None = None
        self._topics_known = False
        for member in members:
            self.add(member)

    def __repr__(self) -> str:
        return f"ClassicGroup({self.group_id}, {self.state_name()}, generation {self.generation_id}, {len(self.members)} members)"

    # What it is

    @property
    def group_type(self) -> str:
        return "classic"

    def state_name(self) -> str:
        return self.state.value

    def is_empty(self) -> bool:
        return self.state is EMPTY

    def uses_consumer_protocol(self) -> bool:
        """Its members are consumers, whose subscriptions we can read."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def awaiting_join_count(self) -> int:
        return self._awaiting_join_count

    def has_all_members_joined(self) -> bool:
        return self._awaiting_join_count == len(self.members) and not self.pending_join

    # Members

    def add(self, member: ClassicMember, join_answer: Answer[JoinGroupResponse] | None = None) -> None:
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        assert member.protocol_type == self.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._supporters.update(member.supported_protocols.keys())
        self._topics_known = False
        self.pending_join.discard(member.member_id)
        self.await_join(member, join_answer)

    def remove(self, member_id: str) -> None:
        """No longer a member, nor about to be one. Its waiting requests must have been answered before."""
        member = self.members.pop(member_id, None)
        if member is not None:
            assert not member.has_request
            self._supporters -= Counter(member.supported_protocols.keys())
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_join.discard(member_id)
        self.pending_sync.discard(member_id)

    def update(
        self, member: ClassicMember, protocols: dict[str, bytes], rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        self._supporters -= Counter(member.supported_protocols.keys())
        member.supported_protocols = protocols
        self._supporters.update(protocols.keys())
        self._topics_known = False
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def rename_static_member(self, member: ClassicMember, member_id: str) -> None:
        """It goes on under another id, with its assignment and its place.
        Its waiting requests must have been answered before.
        """
        assert member.group_instance_id is not None
        assert not member.has_request
        former_id = member.member_id
        del self.members[former_id]
        self.pending_sync.discard(former_id)
        member.member_id = member_id
        self.members[member_id] = member
        self.static_members[member.group_instance_id] = member_id
        if self.leader_id == former_id:
            self.leader_id = member_id

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        """The member; KafkaError if there is none, or if its instance id now stands for another."""
        if group_instance_id is not None:
            existing_id = self.static_members.get(group_instance_id)
            if existing_id is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if existing_id != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def elect_joined_leader(self) -> bool:
        """Whether it is led by a member that has joined: the leader it had, or else another."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].join_answer is None:
            joined = next((name for name, member in self.members.items() if member.join_answer is not None), None)
            if joined is None:
                return False
            self.leader_id = joined
        return True

    # Requests that wait

    def await_join(self, member: ClassicMember, answer: Answer[JoinGroupResponse] | None) -> None:
        """This JoinGroup waits from now on; an earlier one of the member would never be answered otherwise."""
        if member.join_answer is not None:
            self.answer_join(member, responses.join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        member.join_answer = answer
        if answer is not None:
            self._awaiting_join_count += 1

    def answer_join(self, member: ClassicMember, response: JoinGroupResponse) -> None:
        """Does nothing if it doesn't wait."""
        answer, member.join_answer = member.join_answer, None
        if answer is not None:
            self._awaiting_join_count -= 1
            answer(response)

    def await_sync(self, member: ClassicMember, answer: Answer[SyncGroupResponse]) -> None:
        self.answer_sync(member, responses.sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync_answer = answer

    def answer_sync(self, member: ClassicMember, response: SyncGroupResponse) -> bool:
        """Whether it waited."""
        answer, member.sync_answer = member.sync_answer, None
        if answer is not None:
            answer(response)
        return answer is not None

    # Rebalancing

    def transition_to(self, state: ClassicGroupState, at: Moment) -> None:
        assert self.state in REACHED_FROM[state], f"{self} can't become {state.value}"
        self.previous_state, self.state, self.state_since_ms = self.state, state, at.wall_ms

    def can_rebalance(self) -> bool:
        return self.state in REACHED_FROM[PREPARING_REBALANCE]

    def begin_next_generation(self, at: Moment) -> None:
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.pending_sync.clear()
        self._topics_known = False
        self.transition_to(COMPLETING_REBALANCE if self.members else EMPTY, at)

    def die(self) -> None:
        """It is gone from this coordinator; what still refers to it must not bring it back."""
        self.previous_state, self.state = self.state, DEAD

    # Protocols

    def supports(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """A member with these could join: there is one that all members support."""
        if self.state is EMPTY:
            return bool(protocol_type) and any(True for _ in protocols)
        return protocol_type == self.protocol_type and any(
            self._supporters[name] == len(self.members) for name in protocols
        )

    def select_protocol(self) -> str:
        """The one that most members like best, of those that all support."""
        candidates = {name for name, count in self._supporters.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics its members consume; None: they are no consumers, or don't say it in a way we can read."""
        if not self._topics_known:
            self._topics, self._topics_known = self._read_topics(), True
        return self._topics

    def _read_topics(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol():
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        try:
            return frozenset(topic for member in self.members.values() for topic in self._topics_of(member))
        except MalformedRequest:
            return None

    def _topics_of(self, member: ClassicMember) -> list[str]:
        """While members join, one may not support the group's protocol; it says the same in each of its own."""
        name = (
            self.protocol_name
            if self.protocol_name in member.supported_protocols
            else next(iter(member.supported_protocols))
        )
        return subscribed_topics(member.metadata(name))

    # What offsets, listing and deletion need (groups/group.py)

    def is_subscribed_to(self, topic: str) -> bool:
        topics = self.subscribed_topics
        return self.uses_consumer_protocol() if topics is None else topic in topics

    def offset_expiration(self) -> OffsetExpiration | None:
        if not self.protocol_type:
            return OffsetExpiration(since_ms=None)
        if self.state is EMPTY:
            return OffsetExpiration(since_ms=self.state_since_ms)
        if self.state is STABLE and self.subscribed_topics is not None:
            return OffsetExpiration(since_ms=None)
        return None

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> CommitPartitionValidator | None:
        if self.state is DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation_or_epoch < 0 and self.state is EMPTY:
            return None  # the admin client, or a consumer that chose its partitions itself
        if generation_or_epoch >= 0 or member_id or group_instance_id is not None:
            self.validate_member(member_id, group_instance_id)
            if generation_or_epoch != self.generation_id:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not is_transactional:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if self.state is COMPLETING_REBALANCE and not is_transactional:
            # It knows the generation but not yet what it was assigned; it may commit what it had before it joined
            # again.
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return None

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self._check_alive()

    def validate_offset_delete(self) -> None:
        self._check_alive()
        if self.state is not EMPTY and not self.uses_consumer_protocol():
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def validate_delete(self) -> None:
        self._check_alive()
        if self.state is not EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def _check_alive(self) -> None:
        if self.state is DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is in dead state.")

    def extend_session(self, shard: GroupShard, member_id: str, at: Moment) -> None:
        member = self.members.get(member_id)
        if member is not None and self.state in (STABLE, PREPARING_REBALANCE):
            member.heard(at)

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None)]

    # Invariants

    def check_invariants(self) -> None:
        """What must hold between two turns of the event loop; the simulator asks after each that changed the shard."""
        members = self.members
        assert all(member.member_id == member_id for member_id, member in members.items()), f"{self}: {list(members)}"
        static = {member.group_instance_id: member.member_id for member in members.values() if member.is_static}
        assert self.static_members == static, f"{self}: static members {self.static_members}, not {static}"
        assert self.leader_id in members if members else self.leader_id is None, f"{self}: {self.leader_id} leads"
        assert self.pending_join.isdisjoint(members), f"{self}: members are to join with {self.pending_join}"
        assert self.pending_sync <= members.keys(), f"{self}: no members are to sync with {self.pending_sync}"
        self._check_protocols()
        self._check_state()

    def _check_protocols(self) -> None:
        members, types = self.members, {member.protocol_type for member in self.members.values()}
        assert types <= {self.protocol_type}, f"{self}: protocol type {self.protocol_type}, members have {types}"
        supporters = Counter(name for member in members.values() for name in member.supported_protocols)
        assert self._supporters == supporters, f"{self}: {self._supporters} are counted, not {supporters}"
        assert not members or len(members) in supporters.values(), f"{self}: no protocol in common of {supporters}"
        if self.state in (COMPLETING_REBALANCE, STABLE):
            assert supporters[self.protocol_name or ""] == len(members), f"{self}: not all support {self.protocol_name}"

    def _check_state(self) -> None:
        state, members = self.state, self.members.values()
        assert state is not EMPTY or not members, f"{self} has members"
        assert members or state not in (COMPLETING_REBALANCE, STABLE), f"{self} has no members"
        assert not self.pending_sync or state in (COMPLETING_REBALANCE, STABLE), f"{self} awaits {self.pending_sync}"
        joins = [member for member in members if member.join_answer is not None]
        assert self._awaiting_join_count == len(joins), f"{self}: {self._awaiting_join_count} joins, not {len(joins)}"
        # In a stable group a static member that came back waits until its new id is committed.
        assert state is PREPARING_REBALANCE or all(member.is_static and state is STABLE for member in joins), (
            f"{self}: joins wait"
        )
        assert state is COMPLETING_REBALANCE or all(member.sync_answer is None for member in members), (
            f"{self}: syncs wait"
        )
