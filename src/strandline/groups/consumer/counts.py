"""How many members (or patterns) refer to a topic, an assignor or a protocol.

Always true: a name whose count is zero is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable


class SubscriberCounts(dict[str, int]):
    def add(self, names: Iterable[str]) -> None:
        for name in names:
            self[name] = self.get(name, 0) + 1

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            left = self[name] - 1
            if left:
                self[name] = left
            else:
                del self[name]

    def copy(self) -> SubscriberCounts:
        return SubscriberCounts(self)
