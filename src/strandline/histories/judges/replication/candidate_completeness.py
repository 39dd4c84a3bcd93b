"""I2: every running member of ISR and ELR, as the controller has them, has all that is committed."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import RECOVERING, Key, ReplicaJudge, ReplicaObservation, ReplicaStatus
from strandline.metadata.image import MetadataImage, PartitionImage


class CandidateCompleteness(ReplicaJudge):
    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        if before is not None and after.log_end_offset >= before.log_end_offset and not after.leads:
            return
        state = observed.state(key)
        if state is not None:
            self._check(observed, key, state, state.isr if after.leads else (), node_id)

    def metadata(
        self,
        observed: ReplicaObservation,
        key: Key,
        before: PartitionImage | None,
        after: PartitionImage,
        image: MetadataImage,
    ) -> None:
        if before is not None and key in observed.committed:
            known = {*before.isr, *before.elr}
            self._check(observed, key, after, [member for member in (*after.isr, *after.elr) if member not in known])

    @staticmethod
    def _check(
        observed: ReplicaObservation, key: Key, state: PartitionImage, also: Iterable[int], node_id: int = -1
    ) -> None:
        if state.leader_recovery_state == RECOVERING:
            return
        end_offset = observed.committed[key].end_offset
        for candidate in (*state.isr, *state.elr):
            if candidate != node_id and candidate not in also:
                continue
            replica = observed.replicas.get((candidate, key))
            if (
                replica is not None
                and replica.log_end_offset < end_offset
                and replica.is_online
                and observed.is_current(candidate)
            ):
                raise Violation(f"n{candidate} ends at {replica.log_end_offset} of {end_offset} committed: {state}")
