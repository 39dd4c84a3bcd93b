"""Brokers that this node has just lost touch with, and brokers that were just fenced.

A client that has lost its leader asks another broker at once who leads, and librdkafka, once it has a name, does not
ask again for a second. So a broker that has seen the same connections close says for a moment that the leader is not
available: by then the controller has found another one. And a broker that was fenced is still named among the brokers
for a moment.

Always true: a suspicion ends when the broker is reached again, and after SUSPECTED_S in any case: who is alive is the
controller's to say.
"""

from __future__ import annotations

from collections.abc import Callable

SUSPECTED_S = 1.5
"""By then a broker whose connections closed is fenced, if there is a controller."""
DEPARTED_S = 2.0
"""Long enough for every client of it to have asked."""


class Suspects:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._closed: dict[int, float] = {}
        self._fenced: dict[int, float] = {}

    def closed(self, broker_id: int) -> None:
        """A connection to it ended."""
        self._closed[broker_id] = self._clock()

    def reached(self, broker_id: int) -> None:
        self._closed.pop(broker_id, None)

    def fenced(self, broker_id: int) -> None:
        self._fenced[broker_id] = self._clock()

    def now(self) -> frozenset[int]:
        """Those that may be gone."""
        self._closed = self._newer(self._closed, SUSPECTED_S)
        return frozenset(self._closed)

    def departed(self) -> frozenset[int]:
        """Those that were fenced a moment ago."""
        self._fenced = self._newer(self._fenced, DEPARTED_S)
        return frozenset(self._fenced)

    def _newer(self, noted: dict[int, float], age_s: float) -> dict[int, float]:
        if not noted:
            return noted
        since = self._clock() - age_s
        return {broker_id: at for broker_id, at in noted.items() if at > since}
