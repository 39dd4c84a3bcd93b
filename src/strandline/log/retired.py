"""Files that left a log: closed once nothing beside the event loop uses them any more.

Always true: while the log is held, by a flush or another work, none of its files is closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Closable(Protocol):
    def close(self) -> None: ...


class RetiredFiles:
    __slots__ = ("_files", "_holds")

    def __init__(self) -> None:
        self._files: list[Closable] = []
        self._holds = 0
        """How many works are under way that use the log's files."""

    def add(self, gone: Iterable[Closable]) -> None:
        self._files += gone
        if not self._holds:
            for file in self._files:
                file.close()
            self._files = []

    @contextmanager
    def held(self) -> Iterator[None]:
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            self.add(())
