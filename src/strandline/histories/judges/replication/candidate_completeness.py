"""I2: every running member of ISR and ELR, as the controller has them, has all that is committed."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.replica_sight import RECOVERING, Key, Replica, ReplicaJudge, ReplicaSight
from strandline.histories.sight import Violation
from strandline.metadata.image import MetadataImage, PartitionImage


class CandidateCompleteness(ReplicaJudge):
    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        if before is not None and after.log_end_offset >= before.log_end_offset and not after.leads:
            return
        state = sight.state(key)
        if state is not None:
            self._check(sight, key, state, state.isr if after.leads else (), node_id)

    def metadata(
        self, sight: ReplicaSight, key: Key, before: PartitionImage | None, after: PartitionImage, image: MetadataImage
    ) -> None:
        if before is not None and key in sight.committed:
            known = {*before.isr, *before.elr}
            self._check(sight, key, after, [member for member in (*after.isr, *after.elr) if member not in known])

    @staticmethod
    def _check(sight: ReplicaSight, key: Key, state: PartitionImage, also: Iterable[int], node_id: int = -1) -> None:
        if state.leader_recovery_state == RECOVERING:
            return
        end_offset = sight.committed[key].end_offset
        for candidate in (*state.isr, *state.elr):
            if candidate != node_id and candidate not in also:
                continue
            replica = sight.replicas.get((candidate, key))
            if (
                replica is not None
                and replica.log_end_offset < end_offset
                and replica.is_online
                and sight.is_current(candidate)
            ):
                raise Violation(f"n{candidate} ends at {replica.log_end_offset} of {end_offset} committed: {state}")
