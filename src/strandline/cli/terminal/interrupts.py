"""Ctrl-C and SIGTERM as requests to stop, for commands that stream.

Always true: the first signal interrupts no work, so connections are closed, groups are left and output is complete; the second
one raises KeyboardInterrupt.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

POLL_S = 0.2
"""How long a command may block before it checks for a stop request."""


class StopRequest:
    """Whether the user has asked the command to stop."""

    def __init__(self) -> None:
        self.requested = False

    def on_signal(self, number: int, frame: object) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@contextlib.contextmanager
def ctrl_c() -> Iterator[StopRequest]:
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, stop.on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
