"""What was written to the compacted topic: each value once, under a key that others have too, and the result of each
send.

Always true: a send is acknowledged with its offset, or its outcome is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class FoundRecord(NamedTuple):
    """A record as it was found."""

    offset: int
    key: bytes
    value: bytes | None


@dataclass(slots=True)
class KeyedSend:
    key: bytes
    value: bytes | None
    """None: a tombstone."""
    offset: int | None = None
    """Once it is acknowledged."""


class KeyedHistory:
    def __init__(self) -> None:
        self.sends: list[KeyedSend] = []
        self.read: list[FoundRecord] = []
        """By a consumer, from the beginning to the end, when all was written."""

    def note_sent(self, key: bytes, value: bytes | None) -> KeyedSend:
        send = KeyedSend(key, value)
        self.sends.append(send)
        return send

    @property
    def keys(self) -> set[bytes]:
        return {send.key for send in self.sends}

    def last_acknowledged(self, key: bytes) -> KeyedSend | None:
        """The one with the largest offset."""
        acknowledged = (send for send in self.sends if send.key == key and send.offset is not None)
        return max(acknowledged, key=lambda send: send.offset or 0, default=None)
