"""I3, replication quorum superset: whom the controller may elect counts with the leader, whatever became of its last wish."""

from __future__ import annotations

from strandline.histories.min_isr import min_isr
from strandline.histories.replica_sight import Key, Replica, ReplicaJudge, ReplicaSight
from strandline.histories.sight import Violation
from strandline.metadata.image import MetadataImage, PartitionImage


class MaximalIsr(ReplicaJudge):
    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        if not after.leads or (before is not None and before.maximal is after.maximal and before.wish is after.wish):
            return
        if not after.is_pending and set(after.maximal) != set(after.isr):
            raise Violation(f"maximal ISR {after.maximal} without a wish, and the ISR is {after.isr}")
        state = sight.state(key)
        if state is not None and (state.leader, state.leader_epoch) == (node_id, after.leader_epoch):
            self._check(sight, key, state, after)

    def metadata(
        self, sight: ReplicaSight, key: Key, before: PartitionImage | None, after: PartitionImage, image: MetadataImage
    ) -> None:
        leader = sight.replicas.get((after.leader, key))
        is_newest = leader is not None and leader.leads and leader.leader_epoch == after.leader_epoch
        if leader is not None and is_newest and sight.is_current(after.leader):
            self._check(sight, key, after, leader)

    @staticmethod
    def _check(sight: ReplicaSight, key: Key, state: PartitionImage, leader: Replica) -> None:
        enough = min_isr(sight.image, sight.image.topics_by_id[key[0]].name, state)
        if len(leader.isr) >= enough and not {*state.isr, *state.elr} <= set(leader.maximal):
            raise Violation(f"maximal ISR {leader.maximal}, and the controller has {state}")
