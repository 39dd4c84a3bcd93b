"""Replies of one connection on their way out, in the order of their requests.

Always true: a reply leaves after those to all earlier requests; `ready` holds what may leave with the next write,
`slots` the requests behind the first one that is not answered yet.
"""

from __future__ import annotations

from collections import deque

from strandline.node.reply_slots import HEAD_BYTES_MAX, RequestKind, Slot, head
from strandline.ports import Buffer


class ReplyQueue:
    __slots__ = ("held_bytes", "ready", "ready_bytes", "slots")

    def __init__(self) -> None:
        self.slots: deque[Slot] = deque()
        self.ready: list[Buffer] = []
        self.ready_bytes = 0
        self.held_bytes = 0
        """Replies that are there and wait for an earlier one."""

    def add(self, kind: RequestKind, correlation_id: int, reply: bytes | list[Buffer]) -> int:
        """A reply that nothing has to wait for; while there are no slots. What is ready now."""
        if isinstance(reply, bytes):
            size_bytes = len(reply)
            self.ready.append(head(kind, correlation_id, size_bytes) + reply)
        else:
            size_bytes = sum(map(len, reply))
            self.ready += (head(kind, correlation_id, size_bytes), *reply)
        self.ready_bytes = ready_bytes = self.ready_bytes + HEAD_BYTES_MAX + size_bytes
        return ready_bytes

    def put(self, slot: Slot, buffers: list[Buffer]) -> None:
        """The reply of a slot."""
        size_bytes = sum(map(len, buffers))
        slot.buffers = [head(slot.kind, slot.correlation_id, size_bytes), *buffers]
        slot.size_bytes = HEAD_BYTES_MAX + size_bytes
        slot.later = None
        self.held_bytes += slot.size_bytes

    def skip(self, slot: Slot) -> None:
        """A slot that gets no reply: its place in the order is all that it had."""
        slot.buffers = []
        slot.later = None

    def gather(self) -> None:
        """What nothing is in front of any more becomes ready."""
        slots = self.slots
        while slots and (buffers := slots[0].buffers) is not None:
            self.ready += buffers
            self.ready_bytes += slots[0].size_bytes
            self.held_bytes -= slots[0].size_bytes
            slots.popleft()

    def take(self) -> tuple[list[Buffer], int]:
        """All that is ready, and its size at most."""
        taken = self.ready, self.ready_bytes
        self.ready, self.ready_bytes = [], 0
        return taken

    def forget(self) -> deque[Slot]:
        """The slots, whose replies are not wanted any more."""
        slots, self.slots = self.slots, deque()
        self.held_bytes = 0
        return slots
