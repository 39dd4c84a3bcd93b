"""Who hears about connections: the listener that accepted them.

Always true: `opened` comes before anything else, `closed` last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from strandline.node.connection import Connection


class ConnectionOwner(Protocol):
    def opened(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection) -> None: ...

    def refused(self, connection: Connection, reason: str) -> None:
        """The peer broke the protocol; its connection ends."""

    def failed(self, connection: Connection, error: Exception) -> None:
        """We could not answer; the connection ends, the node goes on."""
