"""D8, D9: what a metadata log says to be flushed would survive a power loss: its bytes, and the names of its files."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation


class FlushedIsOnDevice(QuorumJudge):
    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        flushed_offset = after.flushed_offset
        if before is not None and before.flushed_offset == flushed_offset and before.life == after.life:
            return
        durable_end = observed.members[node_id].durable_end()
        if durable_end < flushed_offset:
            raise Violation(f"says that {flushed_offset} is flushed, and its device holds {durable_end}")
