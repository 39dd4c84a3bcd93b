"""Log lines that a stranger can cause: each kind at most once in a while, with the number of those left out.

Always true: the first of its kind is logged at once.
"""

from __future__ import annotations

from strandline.node.logger import Logger

EVERY_S = 10.0


class LimitedLog:
    def __init__(self, logger: Logger) -> None:
        self._logger = logger
        self._last: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def warning(self, event: str, now: float, **values: object) -> None:
        last = self._last.get(event)
        if last is not None and now - last < EVERY_S:
            self._left_out[event] = self._left_out.get(event, 0) + 1
            return
        self._last[event] = now
        left_out = self._left_out.pop(event, 0)
        self._logger.warning(event, **values, **({"left_out": left_out} if left_out else {}))
