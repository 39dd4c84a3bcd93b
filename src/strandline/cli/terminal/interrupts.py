"""Ctrl-C, and SIGTERM, as a request to come to an end, for commands that stream.

Always true: the first one never interrupts work under way, so connections are closed, groups are left and output is whole; the
second one does.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

POLL_S = 0.2
"""How long a command may wait for something else before it looks whether it was asked to end."""


class Asked:
    """Whether the person at the terminal wants the command to end."""

    def __init__(self) -> None:
        self.to_end = False

    def on_signal(self, number: int, frame: object) -> None:
        if self.to_end:
            raise KeyboardInterrupt
        self.to_end = True


@contextlib.contextmanager
def ctrl_c() -> Iterator[Asked]:
    asked = Asked()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, asked.on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
