"""A6: who knows another leader epoch than the broker it asks is told so, and gets neither records nor offsets.

An answer may have been made a while before it leaves: it is held against the broker only if that knew its leader epoch before the
request left.
"""

from __future__ import annotations

from strandline.histories.exchanges import CONSUMER, FETCH, Exchange
from strandline.histories.replica_sight import Key, Replica, ReplicaJudge, ReplicaSight
from strandline.histories.sight import Violation

UNKNOWN = -1


class CurrentLeaderEpoch(ReplicaJudge):
    def __init__(self) -> None:
        self._since: dict[tuple[int, Key], float] = {}
        """By replica: when it came to its leader epoch."""

    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        if before is None or before.leader_epoch != after.leader_epoch:
            self._since[node_id, key] = sight.now

    def answered(self, sight: ReplicaSight, node_id: int, exchange: Exchange) -> None:
        for place, asked in exchange.asked.items():
            if asked.leader_epoch == UNKNOWN or (key := sight.key(place)) is None:
                continue
            replica = sight.replicas.get((node_id, key))
            if replica is None or replica.leader_epoch == asked.leader_epoch:
                continue
            if self._since[node_id, key] >= exchange.asked_at:
                continue
            answer = exchange.answers().get(place)
            is_follower = exchange.api_key == FETCH and exchange.replica_id != CONSUMER
            if answer is not None and not answer.error_code and (answer.tells or is_follower):
                raise Violation(
                    f"{sight.committed[key].name}: serves API {exchange.api_key} in leader epoch {replica.leader_epoch}, "
                    f"and was asked in {asked.leader_epoch}"
                )
