"""I3, replication quorum superset: every replica that the controller may elect counts for the leader, whatever
became of its last proposal."""

from __future__ import annotations

from strandline.histories.min_isr import min_isr
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus
from strandline.metadata.image import MetadataImage, PartitionImage


class MaximalIsr(ReplicaJudge):
    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        if not after.leads or (
            before is not None and before.maximal is after.maximal and before.proposed_isr is after.proposed_isr
        ):
            return
        if not after.is_pending and set(after.maximal) != set(after.isr):
            raise Violation(f"maximal ISR {after.maximal} without a proposal, and the ISR is {after.isr}")
        state = observed.state(key)
        if state is not None and (state.leader, state.leader_epoch) == (node_id, after.leader_epoch):
            self._check(observed, key, state, after)

    def metadata(
        self,
        observed: ReplicaObservation,
        key: Key,
        before: PartitionImage | None,
        after: PartitionImage,
        image: MetadataImage,
    ) -> None:
        leader = observed.replicas.get((after.leader, key))
        is_newest = leader is not None and leader.leads and leader.leader_epoch == after.leader_epoch
        if leader is not None and is_newest and observed.is_current(after.leader):
            self._check(observed, key, after, leader)

    @staticmethod
    def _check(observed: ReplicaObservation, key: Key, state: PartitionImage, leader: ReplicaStatus) -> None:
        enough = min_isr(observed.image, observed.image.topics_by_id[key[0]].name, state)
        if len(leader.isr) >= enough and not {*state.isr, *state.elr} <= set(leader.maximal):
            raise Violation(f"maximal ISR {leader.maximal}, and the controller has {state}")
