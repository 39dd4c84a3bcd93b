"""How many connections a node has, to whom, and whether one more is let in (`max.connections`,
`max.connections.per.ip`).

Some listeners are kept open for the cluster itself: those of controllers, and that of brokers if clients have another
one. Their connections do not count against the two settings, which any client may set, so that no value of them takes a
node out of its cluster (SEC-Q9).

Always true: all connections together are no more than the descriptors that the process keeps for them, however they are
divided (SEC-L5); a TLS connection counts from the moment it is accepted (SEC-T14). If there is no room for one of the
cluster's own, the client's connection that was silent for longest makes room.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

UNLIMITED = 1 << 31
CLUSTER_SHARE = 4
"""One part in so many of all connections may be the cluster's own: a stranger on their port does not push all clients
out."""
CLUSTER_CONNECTIONS_MIN = 64


class ConnectionSlot(Protocol):
    """A connection, or one that is still in its TLS handshake."""

    peer: str
    last_active: float

    def abort(self) -> None: ...


class ConnectionCounts:
    def __init__(self, connections_max: int = UNLIMITED) -> None:
        """`connections_max`: for how many the process has descriptors."""
        self.connections_max = connections_max
        self.refused: Counter[str] = Counter()
        """By reason."""
        self.evicted = 0
        self._clients: dict[ConnectionSlot, None] = {}
        self._cluster: dict[ConnectionSlot, None] = {}
        self._per_peer: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._clients) + len(self._cluster)

    def admit(self, connection: ConnectionSlot, *, of_cluster: bool, max_connections: int, per_ip: int) -> str | None:
        """Count it; or why it is not let in."""
        refusal = self._room_for_cluster() if of_cluster else self._refusal(connection.peer, max_connections, per_ip)
        if refusal is not None:
            self.refused[refusal] += 1
            return refusal
        if of_cluster:
            self._cluster[connection] = None
        else:
            self._clients[connection] = None
            self._per_peer[connection.peer] += 1
        return None

    def _refusal(self, peer: str, max_connections: int, per_ip: int) -> str | None:
        if len(self._clients) >= max_connections:
            return "max.connections"
        if len(self) >= self.connections_max:
            return "open files"
        return "max.connections.per.ip" if self._per_peer[peer] >= per_ip else None

    def _room_for_cluster(self) -> str | None:
        if len(self) < self.connections_max:
            return None
        share = max(CLUSTER_CONNECTIONS_MIN, self.connections_max // CLUSTER_SHARE)
        if not self._clients or len(self._cluster) >= share:
            return "open files"
        longest_silent = min(self._clients, key=lambda connection: connection.last_active)
        self.evicted += 1
        self.leave(longest_silent)
        longest_silent.abort()
        return None

    def leave(self, connection: ConnectionSlot) -> None:
        """It is gone, if it was counted."""
        self._cluster.pop(connection, None)
        if self._clients.pop(connection, self) is None:
            self._per_peer[connection.peer] -= 1
            if not self._per_peer[connection.peer]:
                del self._per_peer[connection.peer]
