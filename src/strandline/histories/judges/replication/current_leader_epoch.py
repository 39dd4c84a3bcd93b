"""A6: a request with another leader epoch than the broker's is refused: it gets neither records nor offsets.

An answer may have been made a while before it leaves: it is held against the broker only if that knew its leader epoch
before the request left.
"""

from __future__ import annotations

from strandline.histories.exchanges import CONSUMER, FETCH, BrokerExchange
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus

UNKNOWN = -1


class CurrentLeaderEpoch(ReplicaJudge):
    def __init__(self) -> None:
        self._since: dict[tuple[int, Key], float] = {}
        """By replica: when it came to its leader epoch."""

    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        if before is None or before.leader_epoch != after.leader_epoch:
            self._since[node_id, key] = observed.now

    def answered(self, observed: ReplicaObservation, node_id: int, exchange: BrokerExchange) -> None:
        for place, asked in exchange.asked.items():
            if asked.leader_epoch == UNKNOWN or (key := observed.key(place)) is None:
                continue
            replica = observed.replicas.get((node_id, key))
            if replica is None or replica.leader_epoch == asked.leader_epoch:
                continue
            if self._since[node_id, key] >= exchange.asked_at:
                continue
            answer = exchange.answers().get(place)
            is_follower = exchange.api_key == FETCH and exchange.replica_id != CONSUMER
            if answer is not None and not answer.error_code and (answer.has_data or is_follower):
                raise Violation(
                    f"{observed.committed[key].name}: serves API {exchange.api_key} in leader epoch {replica.leader_epoch}, "
                    f"and was asked in {asked.leader_epoch}"
                )
