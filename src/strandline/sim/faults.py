"""What is wrong with a simulated disk, by path prefix.

Always true: a path suffers every fault whose prefix it starts with; a fault with a count is over after that many errors; a disk
that fills up takes a write as a whole or not at all.
"""

from __future__ import annotations

import enum
import errno

from strandline.sim.namespace import error


class Fault(enum.Enum):
    FULL = "full"
    READ_ONLY = "read only"
    READ_ERROR = "read error"
    WRITE_ERROR = "write error"
    SYNC_ERROR = "sync error"
    NO_HANDLES = "no handles"
    """The process has no descriptor left: nothing can be opened, and what is open goes on."""


_CODES = {Fault.FULL: errno.ENOSPC, Fault.READ_ONLY: errno.EROFS, Fault.NO_HANDLES: errno.EMFILE}


class Faults:
    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._slow: dict[str, float] = {}

    def set(self, prefix: str, fault: Fault, times: int | None = None, *, after_bytes: int = 0) -> None:
        """Let operations fail, the next `times` of them or until `clear`. FULL lets so many more bytes be written first."""
        assert not after_bytes or fault is Fault.FULL, "only a disk that fills up counts bytes"
        self._rules.append(_Rule(prefix, fault, times, after_bytes))

    def slow(self, prefix: str, factor: float) -> None:
        self._slow[prefix] = factor

    def clear(self, prefix: str = "") -> None:
        """Repair everything that was set under a prefix."""
        self._rules = [rule for rule in self._rules if not rule.prefix.startswith(prefix)]
        self._slow = {slow: factor for slow, factor in self._slow.items() if not slow.startswith(prefix)}

    def check(self, path: str, *faults: Fault, size: int = 0) -> None:
        """`size` is what a write would add."""
        for rule in self._rules:
            if rule.fault in faults and path.startswith(rule.prefix):
                if rule.room_bytes and size <= rule.room_bytes:
                    rule.room_bytes -= size
                    continue
                if rule.times is not None:
                    rule.times -= 1
                    if rule.times == 0:
                        self._rules.remove(rule)
                raise error(_CODES.get(rule.fault, errno.EIO), path)

    def room(self, path: str, free_bytes: int) -> int:
        """How much of the free bytes may still be written below a directory."""
        rules = [rule for rule in self._rules if rule.fault is Fault.FULL and path.startswith(rule.prefix)]
        return min([free_bytes, *(rule.room_bytes for rule in rules)])

    def slowness(self, path: str) -> float:
        slowness = 1.0
        for prefix, factor in self._slow.items():
            if path.startswith(prefix):
                slowness *= factor
        return slowness

    def worst_slowness(self) -> float:
        return max(self._slow.values(), default=1.0)


class _Rule:
    __slots__ = ("fault", "prefix", "room_bytes", "times")

    def __init__(self, prefix: str, fault: Fault, times: int | None, room_bytes: int) -> None:
        self.prefix = prefix
        self.fault = fault
        self.times = times
        self.room_bytes = room_bytes
