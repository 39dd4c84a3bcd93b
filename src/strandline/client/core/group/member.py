"""A member of a group, whichever protocol it speaks: what it owns, and which changes of that the application has yet to
be notified of.

The shell sends what `plan` returns, one request at a time, and calls `answered` or `lost` once for each. What the
coordinator takes away, grants, or took without asking waits as a `change` until the application polls: the shell then
commits, calls the application back, and says `applied`. A member whose application does not come back in time leaves
(max_poll_interval_ms).

Always true: `owned` changes only in `applied`, so the application is never surprised; nothing is granted before what is
to be given up was given up; a member that lost its place does not join again before the application was notified.
"""

from __future__ import annotations

import enum
import random
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

import re2

from strandline.client.config import ConsumerConfig
from strandline.client.core.backoff import Backoff, delay_s
from strandline.client.core.cluster_metadata import ClusterMetadata
from strandline.client.core.group.coordinator import GONE
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

NO_GENERATION = -1
NO_MEMBER = ""
TRY_AGAIN = frozenset({*GONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT})
"""Answers that say nothing of the member."""
NEVER = float("inf")


class AssignmentChangeKind(enum.Enum):
    ASSIGNED = "these are its own from now on"
    REVOKED = "these it gives up: what it has done may still be committed"
    LOST = "these are its own no more: another member may have them already"


class AssignmentChange(NamedTuple):
    kind: AssignmentChangeKind
    partitions: tuple[TopicPartition, ...]


class GroupCall(NamedTuple):
    """A request to the coordinator."""

    api_key: int
    message: ApiRequest
    timeout_ms: int


class GroupMetadata(NamedTuple):
    group_id: str
    generation_id: int
    """Of the classic protocol, or the member epoch; -1 if it is no member now."""
    member_id: str
    group_instance_id: str | None


class MemberCore(ABC):
    def __init__(
        self, config: ConsumerConfig, cluster: ClusterMetadata, backoff: Backoff, randomness: random.Random
    ) -> None:
        assert config.group_id is not None
        self.config = config
        self.group_id = config.group_id
        self.member_id = NO_MEMBER
        self.generation = NO_GENERATION
        self.owned: frozenset[TopicPartition] = frozenset()
        self.topics: frozenset[str] = frozenset()
        self.pattern: str | None = None
        self.error: KafkaError | None = None
        """Why it cannot be a member, until the application subscribes anew."""
        self.is_subscribed = False
        self.departures = 0
        """How often something ceased to be its own: what was to be committed before that is not committed after it."""
        self._cluster = cluster
        self._backoff = backoff
        self._randomness = randomness
        self._failures = 0
        self._retry_at = 0.0
        self._heartbeat_at = 0.0
        self._poll_expires_at = NEVER
        self._is_left = False
        """It left because the application did not poll; the next poll brings it back."""
        self._is_lost = False
        self._revoking: frozenset[TopicPartition] = frozenset()
        self._granted: frozenset[TopicPartition] | None = None

    # What the application does

    def subscribe(self, topics: Collection[str], pattern: str | None, now: float) -> None:
        """To these topics, or to all whose whole name matches the pattern (RE2)."""
        if pattern is not None:
            try:
                re2.compile(pattern)
            except re2.error as error:
                raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"'{pattern}': {error}") from None
        self.is_subscribed = True
        self.error = None
        self.topics, self.pattern = frozenset(topics), pattern
        self._retry_at = 0.0
        if self._poll_expires_at == NEVER:
            self._poll_expires_at = now + self.config.max_poll_interval_ms / 1000

    def poll_began(self) -> None:
        """While the application waits for records it is there, however long it waits."""
        self._poll_expires_at = NEVER
        self._is_left = False

    @property
    def is_active(self) -> bool:
        """It is a member, or wants to be one."""
        return self.is_subscribed and self.error is None and not self._is_left

    def poll_ended(self, now: float) -> None:
        self._poll_expires_at = now + self.config.max_poll_interval_ms / 1000

    # Changes that the application is to be notified of

    def change(self) -> AssignmentChange | None:
        """The next, if there is any."""
        if self._is_lost:
            if self.owned:
                return AssignmentChange(AssignmentChangeKind.LOST, tuple(sorted(self.owned)))
            self._is_lost = False
        if self._revoking & self.owned:
            return AssignmentChange(AssignmentChangeKind.REVOKED, tuple(sorted(self._revoking & self.owned)))
        if self._granted is not None:
            return AssignmentChange(AssignmentChangeKind.ASSIGNED, tuple(sorted(self._granted - self.owned)))
        return None

    def applied(self, change: AssignmentChange, now: float) -> None:
        """The application was notified. If the place was lost meanwhile, that is the next change."""
        if change.kind is AssignmentChangeKind.ASSIGNED:
            self.owned |= set(change.partitions)
            self._granted = None
        else:
            self.departures += 1
            self.owned -= set(change.partitions)
            self._revoking -= set(change.partitions)
            self._is_lost = self._is_lost and change.kind is not AssignmentChangeKind.LOST

    @property
    def metadata(self) -> GroupMetadata:
        return GroupMetadata(self.group_id, self.generation, self.member_id, self.config.group_instance_id)

    @property
    def is_rebalancing(self) -> bool:
        """A commit that is refused now may be taken in a moment."""
        return False

    @abstractmethod
    def fenced(self, code: ErrorCode) -> None:
        """The coordinator knows nothing of it, or has gone on without it."""

    def epoch_changed(self) -> None:  # noqa: B027  # one of the protocols has nothing to do
        """A commit was answered that the generation or epoch is another by now, or soon will be."""

    # What the shell does

    @abstractmethod
    def plan(self, now: float) -> GroupCall | None:
        """What to send now."""

    @abstractmethod
    def answered(self, call: GroupCall, response: ApiResponse, now: float) -> ErrorCode:
        """What came of the last plan."""

    @abstractmethod
    def lost(self, call: GroupCall, now: float) -> None:
        """No answer came."""

    @abstractmethod
    def leave(self) -> GroupCall | None:
        """It is a member no more; what to send, if anything. The answer is not needed."""

    def coordinator_found(self, now: float) -> None:
        """Another may be it now, or the same after a while: show that we are here."""
        self._heartbeat_at = self._retry_at = now

    def wakeup(self) -> float:
        """When there is something to plan, unless something happens before."""
        return min(max(self._heartbeat_at, self._retry_at), self._poll_expires_at)

    @property
    def wanted_topics(self) -> frozenset[str]:
        """Topics that it needs to know of."""
        return self.topics

    @property
    def lacks_topics(self) -> bool:
        """Of some of them nothing is known."""
        return not self.wanted_topics <= self._cluster.topics.keys()

    @property
    def wants_all_topics(self) -> bool:
        """It has a pattern to compare with the names of all topics."""
        return self.pattern is not None

    def refreshed(self, topics: frozenset[str] | None) -> None:  # noqa: B027  # one of the protocols has nothing to do
        """A broker was asked for these topics (None: all)."""

    def failed(self, error: KafkaError) -> None:
        """It cannot go on: the application has to know."""
        self.error = error
        self._lose()

    # Shared by the protocols

    def _lose(self) -> None:
        """What it owned is not its own any more."""
        self.departures += 1
        self.generation = NO_GENERATION
        self._is_lost = bool(self.owned)
        self._revoking, self._granted = frozenset(), None

    def _back_off(self, now: float) -> None:
        self._failures += 1
        self._retry_at = now + delay_s(self._backoff, self._failures, self._randomness)

    def _succeeded(self) -> None:
        self._failures = 0
        self._retry_at = 0.0

    def _heartbeat_timeout_ms(self, interval_ms: int) -> int:
        """Long before the session is over, another coordinator may have to be found."""
        return min(self.config.request_timeout_ms, 2 * interval_ms)
