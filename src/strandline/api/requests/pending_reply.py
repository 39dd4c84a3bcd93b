"""What an API may return: a reply, nothing, or a promise of a reply.

Always true: a `Later` is completed exactly once; replies leave a connection in the order of their requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Later:
    """A reply that an append, a watermark or a timer will complete."""

    __slots__ = ("_deliver", "_reply", "done", "may_be_overtaken", "on_cancel")

    def __init__(self, *, may_be_overtaken: bool, on_cancel: Callable[[], None] | None = None) -> None:
        self.may_be_overtaken = may_be_overtaken
        """Whether the next request on the connection may be handled meanwhile, as with a Produce, an OffsetCommit or a
        follower's Fetch."""
        self.on_cancel = on_cancel
        self.done = False
        self._reply: Any = None
        self._deliver: Callable[[Any], None] | None = None

    def complete(self, reply: Any) -> None:
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

    def deliver_to(self, deliver: Callable[[Any], None]) -> None:
        """Where the reply goes; at once if it is there already."""
        if self.done:
            deliver(self._reply)
        else:
            self._deliver = deliver

    def cancel(self) -> None:
        """Nobody wants the reply any more: its connection is gone."""
        if not self.done:
            self.done = True
            self._deliver = None
            if self.on_cancel is not None:
                self.on_cancel()
                self.on_cancel = None
