"""What an API returns: a reply, or the promise of one.

Always true: a `PendingReply` is completed exactly once; replies leave a connection in the order of their requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeAlias, TypeVar

from strandline.ports import Buffer
from strandline.wire.message import Message

R = TypeVar("R")

Reply: TypeAlias = Message | bytes | bytearray | list[Buffer] | None
"""A reply as it goes to the connection: a message, its bytes, or None where the client wants no reply (Produce, acks=0)."""


class PendingReply(Generic[R]):
    """A reply that an append, a watermark or a timer will complete."""

    __slots__ = ("_deliver", "_reply", "done", "may_be_overtaken", "on_cancel")

    def __init__(self, *, may_be_overtaken: bool, on_cancel: Callable[[], None] | None = None) -> None:
        self.may_be_overtaken = may_be_overtaken
        """Whether the next request on the connection may be handled meanwhile, as with a Produce, an OffsetCommit or a
        follower's Fetch."""
        self.on_cancel = on_cancel
        self.done = False
        self._reply: R | Exception | None = None
        self._deliver: Callable[[R | Exception], None] | None = None

    def complete(self, reply: R | Exception) -> None:
        """Give the reply. Nothing is kept of it here: it may be megabytes, and a cycle of references would hold it for long."""
        assert not self.done, "a reply is given once"
        self.done = True
        self.on_cancel = None
        if self._deliver is None:
            self._reply = reply
        else:
            self._deliver(reply)
            self._deliver = None

    def fail(self, error: Exception) -> None:
        """There will be no reply: the connection ends."""
        self.complete(error)

    def deliver_to(self, deliver: Callable[[R | Exception], None]) -> None:
        """Where the reply goes; at once if it is there already."""
        if self.done:
            deliver(self._reply)  # type: ignore[arg-type]
        else:
            self._deliver = deliver

    def cancel(self) -> None:
        """The reply is not wanted any more: its connection is gone."""
        if not self.done:
            self.done = True
            self._deliver = None
            if self.on_cancel is not None:
                self.on_cancel()
                self.on_cancel = None


MaybePending: TypeAlias = bytes | R | Awaitable[bytes | R] | PendingReply[R]
"""A reply, as a message or its bytes, or the promise of one: `MaybePending[CreateTopicsResponse]`."""

Handled: TypeAlias = MaybePending[Reply]
"""What an API returns, whichever it is."""
