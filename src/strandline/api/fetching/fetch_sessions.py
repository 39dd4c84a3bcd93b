"""Fetch sessions of consumers (KIP-227), opened and closed: a reader names its partitions once, then only what changed.

Always true: a session's epoch rises by one with each request (wrapping from 2^31-1 to 1), so a reply that was lost is
noticed; the number of sessions and of partitions in all of them is bounded, and a session that is in use is not thrown out
for a newer one. Those of followers are in `follower_sessions.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from strandline.api.fetching import session_epochs
from strandline.api.fetching.session_epochs import EPOCH_MAX
from strandline.errors import ErrorCode, KafkaError
from strandline.wire.fetch import FetchedPartition, FetchPartition

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
EVICTION_IDLE_S = 120.0
"""A session that was idle for so long may make room for a new one."""
SESSION_PARTITIONS_MAX = 10_000
"""In one session: each of its requests, however short, looks at all of them (SEC-L2). One that would grow beyond it ends."""
PARTITIONS_MAX = 1_000_000
"""In all sessions of a broker: some 300 MiB at the worst. A reader for which there is no room names its partitions each time."""

TopicKey = str | bytes
Place = tuple[TopicKey, int]
Wanted = Sequence[tuple[TopicKey, list[FetchPartition]]]
Forgotten = Sequence[tuple[TopicKey, list[int]]]


@dataclass(slots=True)
class Cached:
    """One partition of a session: what its reader wants, and what it was last sent."""

    wanted: FetchPartition
    high_watermark: int = -2
    log_start_offset: int = -2

    def update(self, answer: FetchedPartition) -> bool:
        """Whether this answer has something new for the reader; what the reader will know afterwards is kept."""
        is_new = bool(answer.records) or bool(answer.error_code) or answer.preferred_read_replica >= 0
        is_new = is_new or answer.diverging_epoch is not None or answer.snapshot_id is not None
        if answer.high_watermark != self.high_watermark or answer.log_start_offset != self.log_start_offset:
            is_new = True
        # After an error the next answer for this partition is sent, whatever its watermark is.
        self.high_watermark = -2 if answer.error_code else answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        return is_new


@dataclass(slots=True)
class FetchSession:
    session_id: int
    by_id: bool
    """Topics are named by id (Fetch version 13 on)."""
    last_used: float
    epoch: int = 1
    partitions: dict[Place, Cached] = field(default_factory=dict)

    def update(self, wanted: Wanted, forgotten: Forgotten = ()) -> None:
        for topic, partitions in wanted:
            for partition in partitions:
                place = (topic, partition.partition)
                if (cached := self.partitions.get(place)) is not None:
                    cached.wanted = partition
                else:
                    self.partitions[place] = Cached(partition)
        for topic, indexes in forgotten:
            for index in indexes:
                self.partitions.pop((topic, index), None)

    def rotate(self, served: Iterable[Place]) -> None:
        """Partitions that just gave records go to the back of the line, so that the others get their turn."""
        for place in served:
            if (cached := self.partitions.pop(place, None)) is not None:
                self.partitions[place] = cached


class FetchSessions:
    """The sessions of one broker."""

    def __init__(self, slots: int, randomness: random.Random) -> None:
        self._slots = slots
        self._randomness = randomness
        self._sessions: dict[int, FetchSession] = {}
        self._partitions_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, wanted: Wanted, *, by_id: bool, now: float) -> FetchSession | None:
        """A new session, or None if there is no room for one: the reader then goes on without."""
        count = sum(len(partitions) for _, partitions in wanted)
        if not 0 < count <= SESSION_PARTITIONS_MAX or self._partitions_count + count > PARTITIONS_MAX:
            return None
        if len(self._sessions) >= self._slots and not self._evict(now):
            return None
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._randomness.randrange(1, EPOCH_MAX)
        session = self._sessions[session_id] = FetchSession(session_id, by_id, now)
        session.update(wanted)
        self._partitions_count += len(session.partitions)
        return session

    def _evict(self, now: float) -> bool:
        if not self._slots:
            return False
        oldest = min(self._sessions.values(), key=lambda session: session.last_used)
        if now - oldest.last_used <= EVICTION_IDLE_S:
            return False
        self.end(oldest.session_id)
        return True

    def resume(
        self, session_id: int, epoch: int, wanted: Wanted, forgotten: Forgotten, *, by_id: bool, now: float
    ) -> FetchSession:
        """The session that a reader goes on with; KafkaError if it is gone, or if a request was missed in between."""
        session = self._sessions.get(session_id)
        if session is None:
            raise _not_found(session_id)
        session_epochs.advance(session, session_id, epoch, by_id=by_id)
        session.last_used = now
        if wanted or forgotten:
            self._partitions_count -= len(session.partitions)
            session.update(wanted, forgotten)
            self._partitions_count += len(session.partitions)
            if len(session.partitions) > SESSION_PARTITIONS_MAX or self._partitions_count > PARTITIONS_MAX:
                self.end(session_id)
                raise _not_found(session_id)
        return session

    def end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions_count -= len(session.partitions)


def _not_found(session_id: int) -> KafkaError:
    return KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no fetch session {session_id}")
