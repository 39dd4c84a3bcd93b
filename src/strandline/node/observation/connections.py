"""What can be seen of the connections of a node: how many there are, what they hold, and which limits they met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strandline.node.connection_counts import ConnectionCounts
from strandline.node.connection_resources import ConnectionResources
from strandline.node.listener import Listener


class ObservedConnections:
    """Of all listeners together, but for `by_listener`; counts are since the node started."""

    __slots__ = ("_counts", "_listeners", "_resources")

    def __init__(self, listeners: Sequence[Listener], counts: ConnectionCounts, resources: ConnectionResources) -> None:
        self._listeners = listeners
        self._counts = counts
        self._resources = resources

    @property
    def by_listener(self) -> Mapping[str, int]:
        """Open ones by the listener's name, those in their TLS handshake included."""
        return {listener.config.name: len(listener) for listener in self._listeners}

    @property
    def connections_max(self) -> int:
        """For how many the process has descriptors."""
        return self._counts.connections_max

    @property
    def refused(self) -> Mapping[str, int]:
        """By the limit for which they were not let in."""
        return self._counts.refused

    @property
    def evicted(self) -> int:
        """Clients' connections that made room for one of the cluster's own."""
        return self._counts.evicted

    @property
    def stalled_requests(self) -> int:
        """Connections closed because a request did not go on arriving."""
        return self._resources.stalled_requests

    @property
    def stalled_replies(self) -> int:
        """Connections closed because their peer did not read."""
        return self._resources.stalled_replies

    @property
    def request_bytes_held(self) -> int:
        """Memory of requests that are still arriving."""
        return self._resources.reads.taken_bytes

    @property
    def waiting_for_memory(self) -> int:
        """Connections whose request has to wait for such memory."""
        return self._resources.reads.waiting

    @property
    def reply_bytes_held(self) -> int:
        """Of replies that peers have not read, as last counted."""
        return self._resources.replies.held_bytes

    @property
    def reply_budget_exhausted(self) -> int:
        """How often unread replies filled their budget."""
        return self._resources.replies.exhausted_count

    @property
    def turns_ended_early(self) -> int:
        """Turns that ended though the connection had more."""
        return self._resources.turns.ended_early
