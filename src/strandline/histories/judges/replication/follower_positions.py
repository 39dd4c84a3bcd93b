"""A6, A7, A12: where a follower stands counts only if it asked in this leader epoch, and only where the logs agree.

A leader that was deposed and elected again without noticing begins with no position at all: another leader may have had
them cut.
"""

from __future__ import annotations

from collections.abc import Mapping

from strandline.errors import ErrorCode
from strandline.histories.exchanges import CONSUMER, FETCH, BrokerExchange
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus
from strandline.node.observation.replicas import ObservedFollower

UNKNOWN = -1
OF_ANOTHER_EPOCH = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH)


class FollowerPositions(ReplicaJudge):
    def __init__(self) -> None:
        self._sound: dict[tuple[int, Key, int], set[int]] = {}
        """By leader, partition and follower: the offsets from which it was served, while that leads on."""
        self._since: dict[tuple[int, Key], float] = {}
        """By replica: when it came to its leader epoch."""

    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        if before is None or before.leader_epoch != after.leader_epoch:
            self._since[node_id, key] = observed.now
        if before is None or not (before.leads and after.leads):
            for whose in [whose for whose in self._sound if whose[:2] == (node_id, key)]:
                del self._sound[whose]
        if before is None or not (before.leads and after.leads) or after.leader_epoch < before.leader_epoch + 2:
            return
        for replica_id, follower in _followers(observed, node_id, key).items():
            asked = observed.asked(node_id, replica_id, key)
            if follower.log_end_offset != UNKNOWN and (asked is None or asked.leader_epoch != after.leader_epoch):
                raise Violation(
                    f"leads again in epoch {after.leader_epoch} after {before.leader_epoch}, "
                    f"and takes {replica_id} to be at {follower.log_end_offset}"
                )

    def answered(self, observed: ReplicaObservation, node_id: int, exchange: BrokerExchange) -> None:
        follower_id = exchange.replica_id
        if exchange.api_key != FETCH or follower_id == CONSUMER or exchange.is_refused:
            return
        answers = None
        for place in exchange.named:
            key = observed.key(place)
            replica = None if key is None else observed.replicas.get((node_id, key))
            if key is None or replica is None or not replica.leads:
                continue
            answers = exchange.answers() if answers is None else answers
            answer, asked = answers.get(place), exchange.asked[place]
            if self._since[node_id, key] >= exchange.asked_at:
                continue  # it counted in the epoch before
            sound = self._sound.setdefault((node_id, key, follower_id), set())
            if answer is None or not (answer.error_code in OF_ANOTHER_EPOCH or answer.is_parted):
                sound.add(asked.offset)
                continue
            if observed.has_asked(node_id, follower_id, place, replica.leader_epoch, asked.offset):
                continue  # an earlier Fetch counted, answered or not
            known = _followers(observed, node_id, key).get(follower_id)
            if known is not None and known.log_end_offset == asked.offset and asked.offset not in sound:
                why = "their logs part" if answer.is_parted else f"it is answered error {answer.error_code}"
                raise Violation(
                    f"{observed.committed[key].name}: takes {follower_id} to be at {asked.offset} in epoch "
                    f"{replica.leader_epoch}; it asked in {asked.leader_epoch}, and {why}"
                )


def _followers(observed: ReplicaObservation, node_id: int, key: Key) -> Mapping[int, ObservedFollower]:
    partition = observed.partition(node_id, key)
    return {} if partition is None else partition.followers
