"""A13 (KIP-207): a leader answers no end of its log below one that was answered in an earlier leader epoch.

Until its high watermark has passed where its epoch begins, it does not know what its predecessor had committed.
"""

from __future__ import annotations

from strandline.histories.exchanges import LATEST, LIST_OFFSETS, BrokerExchange
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation


class EndDoesNotFall(ReplicaJudge):
    def __init__(self) -> None:
        self._answered_ends: dict[Key, list[tuple[int, int]]] = {}
        """Leader epochs and the greatest end that was answered in each, in their order."""

    def answered(self, observed: ReplicaObservation, node_id: int, exchange: BrokerExchange) -> None:
        if exchange.api_key != LIST_OFFSETS or exchange.reads_committed:
            return  # the last stable offset may fall across an election
        latest = [place for place, asked in exchange.asked.items() if asked.timestamp == LATEST]
        answers = exchange.answers() if latest else {}
        for place in latest:
            key, answer = observed.key(place), answers.get(place)
            replica = None if key is None else observed.replicas.get((node_id, key))
            if key is None or answer is None or answer.error_code or replica is None or not replica.leads:
                continue
            if observed.committed[key].era:
                continue  # some of it was lost, as the history's faults may
            self._check(observed.committed[key].name, key, replica.leader_epoch, answer.offset)

    def _check(self, name: str, key: Key, epoch: int, end: int) -> None:
        answered = self._answered_ends.setdefault(key, [])
        for earlier, most in answered:
            if earlier < epoch and end < most:
                raise Violation(f"{name}: answers the end {end} in epoch {epoch}, and answered {most} in {earlier}")
        known = dict(answered)
        known[epoch] = max(end, known.get(epoch, end))
        self._answered_ends[key] = sorted(known.items())
