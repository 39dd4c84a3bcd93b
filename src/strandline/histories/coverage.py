"""What a history exercised: faults, transitions, truncations, error codes; so that a budget of seeds that never cuts a
log is seen.

Always true: a count is of something that happened in the history, never of something that was only planned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

FAULT, SPARED, NEMESIS, QUORUM, REPLICA, SNAPSHOT, ERROR, CLIENT, GROUP, COMPACTION, TRANSACTION, SETTING = (
    "fault",
    "spared fault",
    "act",
    "quorum",
    "replica",
    "snapshot",
    "error",
    "client",
    "group",
    "compaction",
    "transaction",
    "setting",
)
"""The categories: a name within one says what was counted, such as ("replica", "truncation")."""


class Coverage(Counter[tuple[str, str]]):
    def note(self, category: str, name: str, times: int = 1) -> None:
        self[category, name] += times

    def of(self, category: str) -> Iterator[tuple[str, int]]:
        """The names of a category and how often, the most frequent first."""
        found = [(name, count) for (each, name), count in self.items() if each == category]
        return iter(sorted(found, key=lambda pair: (-pair[1], pair[0])))
