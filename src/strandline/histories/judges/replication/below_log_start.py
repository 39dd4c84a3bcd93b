"""A8: a Fetch below the log start is out of range: it gets neither records nor a divergence."""

from __future__ import annotations

from strandline.histories.exchanges import CONSUMER, FETCH, BrokerExchange
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus


class BelowLogStart(ReplicaJudge):
    def __init__(self) -> None:
        self._since: dict[tuple[int, Key], float] = {}
        """By replica: when it was first seen with its log start."""

    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        if before is None or before.log_start_offset != after.log_start_offset:
            self._since[node_id, key] = observed.now

    def answered(self, observed: ReplicaObservation, node_id: int, exchange: BrokerExchange) -> None:
        if exchange.api_key != FETCH:
            return
        for place in exchange.named:
            if (key := observed.key(place)) is None:
                continue
            offset, replica = exchange.asked[place].offset, observed.replicas.get((node_id, key))
            if replica is None or offset >= replica.log_start_offset or self._since[node_id, key] >= exchange.asked_at:
                continue
            answer = exchange.answers().get(place)
            if answer is not None and not answer.error_code and (answer.has_data or exchange.replica_id != CONSUMER):
                raise Violation(
                    f"{observed.committed[key].name}: serves from {offset}, and its log starts at {replica.log_start_offset}"
                )
