"""Which brokers the active controller believes to be alive.

Soft state: nothing of it is in the metadata, and a controller that becomes active begins anew (`take_over`). A session lasts
for the session timeout after each heartbeat. A closed connection says so sooner (docs/decisions/0005): a broker without any
connection to this node has `CLOSED_GRACE_S` to come back, and, where this node has just become active, `TAKE_OVER_GRACE_S` to
find the new controller. A standby has no sessions, but keeps track of connections, so that it knows which brokers are gone.

Always true: a broker with an open connection here is overdue only by the session timeout; a heartbeat of an older broker epoch
never prolongs a session; a broker's heartbeats are believed on one connection at a time.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from strandline.metadata.image import MetadataImage

CLOSED_GRACE_S = 0.2
TAKE_OVER_GRACE_S = 0.4
NO_OFFSET = -1


@dataclass(slots=True)
class _Session:
    epoch: int
    last_contact: float
    was_heard: bool = True
    """By this controller itself; else the session was taken over, and the broker may be long gone."""
    metadata_offset: int = NO_OFFSET
    """The newest metadata that the broker has applied, by its own report."""
    connection: Hashable | None = None
    """The one that its heartbeats come on; None before the first, and when it closed."""
    shutdown_offset: int | None = None
    """What the active brokers must have applied before this one may stop; None if it is not stopping."""


@dataclass(slots=True)
class _Connections:
    open: set[Hashable] = field(default_factory=set)
    closed_at: float | None = None
    """When the last one closed; None while one is open, and before the first."""
    is_hearsay: bool = False
    """The connection that closed was not the broker's own, but another one with its node."""


class Liveness:
    def __init__(self, session_timeout_s: float) -> None:
        self._session_timeout_s = session_timeout_s
        self._sessions: dict[int, _Session] = {}
        self._connections: dict[int, _Connections] = {}
        self._broker_of: dict[Hashable, int] = {}
        self._active_since = 0.0

    # Becoming active, and no longer

    def take_over(self, image: MetadataImage, now: float) -> None:
        """This node is the active controller now: every unfenced broker has a session, before its first heartbeat."""
        self._active_since = now
        self._sessions = {
            broker.broker_id: _Session(broker.epoch, now, was_heard=False)
            for broker in image.brokers.values()
            if not broker.fenced
        }

    def stand_by(self) -> None:
        """This node is not the active controller any more: another controller has the sessions."""
        self._sessions = {}

    # What is heard

    def speaks_for(self, broker_id: int, epoch: int, connection: Hashable, now: float) -> bool:
        """Whether a heartbeat of this epoch on this connection is the broker's own (SEC-Z16). Epochs can be guessed: while the
        connection that the broker's heartbeats come on is open and was not silent for half a session, no other one counts."""
        session = self._sessions.get(broker_id)
        if session is None or session.epoch != epoch or session.connection in (None, connection):
            return True
        return now - session.last_contact >= self._session_timeout_s / 2

    def heard_on(self, broker_id: int, connection: Hashable) -> None:
        """The broker's heartbeats come on this connection."""
        self._sessions[broker_id].connection = connection

    def contact(self, broker_id: int, epoch: int, now: float, metadata_offset: int = NO_OFFSET) -> None:
        """A registration or a heartbeat of this broker epoch."""
        session = self._sessions.get(broker_id)
        if session is None or session.epoch < epoch:
            self._sessions[broker_id] = _Session(epoch, now, metadata_offset=metadata_offset)
        elif session.epoch == epoch:
            session.last_contact = now
            session.was_heard = True
            session.metadata_offset = max(session.metadata_offset, metadata_offset)
        else:
            return
        if broker_id in self._connections:
            self._connections[broker_id].closed_at = None

    def connection_opened(self, broker_id: int, connection: Hashable, now: float) -> None:
        """This connection is the broker's. May be said as often as the broker speaks on it."""
        if self._broker_of.get(connection) == broker_id:
            return
        self.connection_closed(connection, now)
        self._broker_of[connection] = broker_id
        connections = self._connections.setdefault(broker_id, _Connections())
        connections.open.add(connection)
        connections.closed_at = None

    def connection_closed(self, connection: Hashable, now: float) -> None:
        """A connection to this node is gone; nothing happens if it was no broker's."""
        broker_id = self._broker_of.pop(connection, None)
        if broker_id is not None:
            session = self._sessions.get(broker_id)
            if session is not None and session.connection == connection:
                session.connection = None
            connections = self._connections[broker_id]
            connections.open.discard(connection)
            if not connections.open:
                connections.closed_at, connections.is_hearsay = now, False

    def peer_closed(self, broker_id: int, now: float) -> None:
        """Some other connection with this broker's node closed or was refused: one that this node had opened, or a voter's.
        It counts only for a broker that has no connection here, which would show otherwise."""
        connections = self._connections.setdefault(broker_id, _Connections())
        if not connections.open and connections.closed_at is None:
            connections.closed_at, connections.is_hearsay = now, True

    def peer_reached(self, broker_id: int) -> None:
        """This broker's node answered on some other connection: it is not gone. But if the broker's own connection closed, this
        may be another process already."""
        connections = self._connections.get(broker_id)
        if connections is not None and connections.is_hearsay:
            connections.closed_at = None

    def forget(self, broker_id: int) -> None:
        """The broker was fenced, stopped, or unregistered: it has no session until its next contact."""
        self._sessions.pop(broker_id, None)
        if broker_id in self._connections and not self._connections[broker_id].open:
            del self._connections[broker_id]

    # What follows

    def is_live(self, broker_id: int, now: float) -> bool:
        """Whether a session stands against another process that wants to be this broker. One that was only taken over does
        not: after a crash of the whole cluster every broker comes back at once, under a new incarnation."""
        session = self._sessions.get(broker_id)
        return session is not None and session.was_heard and now < self._end_of(broker_id, session)

    def overdue(self, now: float) -> list[int]:
        """Brokers whose session is over, the one that is over longest first. They stay overdue until they are forgotten."""
        deadlines = sorted((deadline, broker_id) for broker_id, deadline in self._deadlines())
        return [broker_id for deadline, broker_id in deadlines if deadline <= now]

    def next_deadline(self) -> float | None:
        """When a session is over next, if nothing is heard before; it may be past. None if there are no sessions."""
        return min((deadline for _, deadline in self._deadlines()), default=None)

    def metadata_offset(self, broker_id: int) -> int:
        session = self._sessions.get(broker_id)
        return NO_OFFSET if session is None else session.metadata_offset

    def shutdown_offset(self, broker_id: int) -> int | None:
        session = self._sessions.get(broker_id)
        return None if session is None else session.shutdown_offset

    def begin_shutdown(self, broker_id: int, offset: int) -> None:
        """The broker may stop once all active brokers have applied what is at `offset`."""
        self._sessions[broker_id].shutdown_offset = offset

    def check_invariants(self) -> None:
        for broker_id, connections in self._connections.items():
            assert connections.closed_at is None or not connections.open, f"broker {broker_id}: {connections}"
        opened = {connection: broker_id for broker_id, each in self._connections.items() for connection in each.open}
        assert opened == self._broker_of, f"open are {opened}, known are {self._broker_of}"
        for broker_id, session in self._sessions.items():
            whose = None if session.connection is None else opened.get(session.connection)
            assert session.connection is None or whose == broker_id, (
                f"the heartbeats of broker {broker_id} come on a connection of {whose}: {session}"
            )

    def _deadlines(self) -> list[tuple[int, float]]:
        return [(broker_id, self._end_of(broker_id, session)) for broker_id, session in self._sessions.items()]

    def _end_of(self, broker_id: int, session: _Session) -> float:
        session_end = session.last_contact + self._session_timeout_s
        connections = self._connections.get(broker_id)
        if connections is None or connections.closed_at is None:
            return session_end
        grace_end = max(connections.closed_at + CLOSED_GRACE_S, self._active_since + TAKE_OVER_GRACE_S)
        return min(session_end, grace_end)
