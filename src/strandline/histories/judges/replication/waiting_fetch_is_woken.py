"""A14: a Fetch that waits is answered by the append, the high watermark or the last stable offset that makes records
visible, and not by its timeout.

Held against a leader only if no fault was injected meanwhile: a request that a cut link holds back has not arrived.
"""

from __future__ import annotations

from strandline.histories.exchanges import CONSUMER, FETCH, BrokerExchange
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus

WITHIN_S = 1.5
"""Reading from a cold page, and a slow link, take less."""
REMEMBERED = 200


class WaitingFetchIsWoken(ReplicaJudge):
    def __init__(self) -> None:
        self._rises: dict[tuple[int, Key], list[tuple[float, int]]] = {}
        """By leader: when its high watermark came to be where, the newest last."""
        self._stable_rises: dict[tuple[int, Key], list[tuple[float, int]]] = {}
        """The same of its last stable offset."""

    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        replica = observed.partition(node_id, key)
        stable = after.high_watermark if replica is None else replica.last_stable_offset
        is_same = before is not None and before.leads and before.leader_epoch == after.leader_epoch
        for known, end in ((self._rises, after.high_watermark), (self._stable_rises, stable)):
            rises = known.setdefault((node_id, key), [])
            if not after.leads or not is_same:
                rises.clear()
            if after.leads and (not rises or rises[-1][1] < end):
                rises.append((observed.now, end))
                del rises[:-REMEMBERED]

    def answered(self, observed: ReplicaObservation, node_id: int, exchange: BrokerExchange) -> None:
        if exchange.api_key != FETCH or exchange.replica_id != CONSUMER:
            return
        now, known = observed.now, self._stable_rises if exchange.reads_committed else self._rises
        if now - exchange.asked_at <= WITHIN_S or observed.disturbed_at >= exchange.asked_at - WITHIN_S:
            return
        for place, asked in exchange.asked.items():
            key = observed.key(place)
            replica = None if key is None else observed.replicas.get((node_id, key))
            if key is None or replica is None or not replica.leads or replica.leader_epoch != asked.leader_epoch:
                continue
            visible_at = next((at for at, end in known.get((node_id, key), ()) if end > asked.offset), None)
            if visible_at is not None and now - max(visible_at, exchange.asked_at) > WITHIN_S:
                what = "last stable offset" if exchange.reads_committed else "high watermark"
                raise Violation(
                    f"{observed.committed[key].name}: answers a Fetch at {asked.offset} after {now - exchange.asked_at:.1f} s; "
                    f"the {what} passed that {now - visible_at:.1f} s ago"
                )
