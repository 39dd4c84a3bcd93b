"""B2, A15: a leader has a replica leave the ISR only if that has not caught up with it for replica.lag.time.max.ms.

A follower has caught up with its leader at a Fetch if it asks for no less than the leader then had, or if its next Fetch
does: what is written during a Fetch is no lag. Both are taken from the bytes, so a Fetch counts from when it left the
follower, and only once the leader has answered it. Until the leader's metadata has the follower's newest registration
no Fetch of that counts (SEC-T7).
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.histories.exchanges import CONSUMER, FETCH, BrokerExchange, NamedPartition
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus

MARGIN = 0.9
"""Of the lag: clocks drift."""


class _CaughtUpFetch(NamedTuple):
    """A Fetch with which a follower had everything, and one that showed it."""

    exchange: BrokerExchange
    witness: BrokerExchange
    place: NamedPartition


class _Last(NamedTuple):
    exchange: BrokerExchange
    log_end_offset: int
    """Of the leader, when it answered."""


class ShrunkOnlyLate(ReplicaJudge):
    def __init__(self) -> None:
        self._last: dict[tuple[int, int, Key, int], _Last] = {}
        """By leader, its leader epoch, partition and follower."""
        self._caught_up: dict[tuple[int, int, Key, int], _CaughtUpFetch] = {}

    def answered(self, observed: ReplicaObservation, node_id: int, exchange: BrokerExchange) -> None:
        follower = exchange.replica_id
        if exchange.api_key != FETCH or follower == CONSUMER or exchange.is_refused:
            return
        if not observed.knows_incarnation(node_id, follower, exchange.replica_epoch):
            return
        for place, asked in exchange.asked.items():
            key = observed.key(place)
            replica = None if key is None else observed.replicas.get((node_id, key))
            if key is None or replica is None or not replica.leads or replica.leader_epoch != asked.leader_epoch:
                continue
            whose = (node_id, replica.leader_epoch, key, follower)
            last = self._last.get(whose)
            if asked.offset > replica.log_end_offset:
                continue  # their logs part, also if this answer does not come to it
            if last is not None and place not in exchange.named and asked.offset < last.log_end_offset:
                continue  # it may have left before the last answer arrived, and then says nothing of what that brought
            if asked.offset == replica.log_end_offset:
                self._caught_up[whose] = _CaughtUpFetch(exchange, exchange, place)
            elif last is not None and asked.offset >= last.log_end_offset:
                self._caught_up[whose] = _CaughtUpFetch(last.exchange, exchange, place)
            self._last[whose] = _Last(exchange, replica.log_end_offset)

    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        proposed = after.proposed_isr
        if proposed is None or not after.leads or (before is not None and before.proposed_isr is proposed):
            return
        for follower in set(after.isr) - set(proposed.replicas):
            caught_up = self._caught_up.get((node_id, after.leader_epoch, key, follower))
            if caught_up is None or not (
                _is_served(caught_up.exchange, caught_up.place) and _is_served(caught_up.witness, caught_up.place)
            ):
                continue
            ago_s, lag_s = observed.now - caught_up.exchange.asked_at, observed.lag_time_max_s(node_id)
            if ago_s < MARGIN * lag_s:
                raise Violation(
                    f"has {follower} leave the ISR, which had caught up {ago_s:.1f} s ago; {lag_s} s are allowed: {proposed.reason}"
                )


def _is_served(exchange: BrokerExchange, place: NamedPartition) -> bool:
    """The leader took note of where the follower is: it neither refused it nor found that their logs part."""
    answer = exchange.answers().get(place)
    return answer is None or (not answer.error_code and not answer.is_parted)
