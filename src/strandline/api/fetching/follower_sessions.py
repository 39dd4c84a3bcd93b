"""The fetch sessions of followers (KIP-227): a follower names its partitions once, then only what changed.

A partition that is named here notifies its session when it has changed (`Watch`), so a round costs as much as has changed, and a
thousand idle partitions cost nothing.

Always true: what is not in `dirty` has nothing that its follower does not know, or was just sent to it; each
replica has at most SESSIONS_MAX sessions, and a session ends with its connection.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from strandline.api.fetching import session_epochs
from strandline.api.fetching.fetch_sessions import Place
from strandline.api.fetching.session_epochs import EPOCH_MAX
from strandline.errors import ErrorCode, KafkaError
from strandline.replica.partition import Partition
from strandline.wire.fetch import FetchPartition

SESSIONS_MAX = 8
"""Of one replica: Kafka's brokers may have several fetchers for one leader (`num.replica.fetchers`)."""

Find = Callable[[Place], Partition | None]
NOT_SENT = -2
NO_CONNECTION = -1


class Watch:
    """One partition of a follower's session: what the follower asked for, and what it was sent."""

    __slots__ = (
        "asked",
        "is_ahead",
        "is_fresh",
        "is_warming",
        "partition",
        "place",
        "sent_high_watermark",
        "sent_log_start_offset",
        "session",
        "was_caught_up",
    )

    def __init__(self, session: FollowerSession, place: Place, asked: FetchPartition) -> None:
        self.session = session
        self.place = place
        self.asked = asked
        self.partition: Partition | None = None
        self.is_fresh = True
        """The follower has just asked for this position, and the leader has not counted it yet."""
        self.is_ahead = False
        """The position does not count: the metadata here does not know this incarnation of the follower yet."""
        self.is_warming = False
        """Its bytes are being read from the device."""
        self.was_caught_up = False
        """At the session's last fetch the follower had everything."""
        self.sent_high_watermark = self.sent_log_start_offset = NOT_SENT

    def notify(self, *, urgent: bool) -> None:
        session = self.session
        session.dirty[self] = None
        if urgent:
            partition = self.partition
            if self.was_caught_up and partition is not None and partition.log.log_end_offset > self.asked.fetch_offset:
                self._note_caught_up()
            if session.on_change is not None:
                session.on_change()

    def _note_caught_up(self) -> None:
        """The log has grown past a follower that had everything when the session was last used."""
        self.was_caught_up = False
        session = self.session
        if self.partition is not None:
            self.partition.follower_was_caught_up(session.replica_id, session.broker_epoch, session.fetched_at)

    def brokers_changed(self) -> None:
        if self.is_ahead:
            self.notify(urgent=True)

    def find(self, find: Find) -> Partition | None:
        """The partition, watched from now on; another one than before if it was made anew."""
        if self.partition is None or self.partition.gone:
            self.leave()
            self.is_fresh, self.was_caught_up = True, False
            self.partition = find(self.place)
            if self.partition is not None:
                self.partition.watchers[self] = None
        return self.partition

    def leave(self) -> None:
        if self.partition is not None:
            if self.was_caught_up:
                self._note_caught_up()
            self.partition.watchers.pop(self, None)
            self.partition = None


class FollowerSession:
    def __init__(self, session_id: int, replica_id: int, broker_epoch: int, by_id: bool, now: float) -> None:
        self.session_id = session_id
        self.replica_id = replica_id
        self.broker_epoch = broker_epoch
        self.by_id = by_id
        self.epoch = 1
        self.connection_id = NO_CONNECTION
        """On which it was last used."""
        self.fetched_at = now
        self.watches: dict[Place, Watch] = {}
        self.dirty: dict[Watch, None] = {}
        self.sent: list[Watch] = []
        """Whose records went out with the last reply."""
        self.unconfirmed: set[Watch] = set()
        """Whose records went out just before this Fetch came, which may have left before they arrived."""
        self.on_change: Callable[[], None] | None = None
        self.on_next: Callable[[], None] | None = None
        """Both are set while a Fetch waits. The next one of the same session may come before it is answered."""

    def take(
        self,
        topics: list[tuple[str | bytes, list[FetchPartition]]],
        forgotten: list[tuple[str | bytes, list[int]]],
        now: float,
    ) -> None:
        """What the follower says in a new Fetch: positions, and what it follows no more."""
        self.fetched_at = now
        # Whatever became of records that were sent: a follower that is still where it was wants them again.
        for watch in self.sent:
            self.dirty[watch] = None
        self.unconfirmed, self.sent = set(self.sent), []
        for topic, partitions in topics:
            for asked in partitions:
                place = (topic, asked.partition)
                known = self.watches.get(place)
                if known is None:
                    known = self.watches[place] = Watch(self, place, asked)
                else:
                    known.asked = asked
                    known.is_fresh = True
                    known.sent_high_watermark = known.sent_log_start_offset = NOT_SENT
                self.dirty[known] = None
        for topic, indexes in forgotten:
            for index in indexes:
                gone = self.watches.pop((topic, index), None)
                if gone is not None:
                    self.dirty.pop(gone, None)
                    gone.leave()

    def close(self) -> None:
        for watch in self.watches.values():
            watch.leave()
        self.watches.clear()
        self.dirty.clear()
        self.sent.clear()


class FollowerSessions:
    """Those of one broker."""

    def __init__(self, randomness: random.Random) -> None:
        self._randomness = randomness
        self._sessions: dict[int, FollowerSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, replica_id: int, broker_epoch: int, *, by_id: bool, now: float) -> FollowerSession:
        own = [session for session in self._sessions.values() if session.replica_id == replica_id]
        if len(own) >= SESSIONS_MAX:
            self.end(min(own, key=lambda session: session.fetched_at).session_id)
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._randomness.randrange(1, EPOCH_MAX)
        session = self._sessions[session_id] = FollowerSession(session_id, replica_id, broker_epoch, by_id, now)
        return session

    def resume(
        self, session_id: int, epoch: int, replica_id: int, broker_epoch: int, *, by_id: bool
    ) -> FollowerSession:
        """The session that a follower goes on with; KafkaError if it is gone, or if a request was missed in between. It belongs
        to the incarnation that began it: another one has to say its positions itself."""
        session = self._sessions.get(session_id)
        if session is None or (session.replica_id, session.broker_epoch) != (replica_id, broker_epoch):
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no fetch session {session_id}")
        session_epochs.advance(session, session_id, epoch, by_id=by_id)
        return session

    def end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def connection_closed(self, connection_id: int) -> None:
        """The follower at its other end begins a new session."""
        ended = [session for session in self._sessions.values() if session.connection_id == connection_id]
        for session in ended:
            self.end(session.session_id)

    def opened(self, topic: str, topic_id: bytes, index: int) -> None:
        """A partition is here now: a follower may have asked for it already."""
        for session in self._sessions.values():
            watch = session.watches.get((topic_id, index) if session.by_id else (topic, index))
            if watch is not None:
                watch.notify(urgent=True)
