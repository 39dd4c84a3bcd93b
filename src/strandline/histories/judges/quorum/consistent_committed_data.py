"""KRaft ConsistentCommittedData, log matching (I4, I9): below any node's high watermark each offset has one batch, brokers
included."""

from __future__ import annotations

from strandline.histories.batches import LoggedBatch
from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation


class ConsistentCommittedData(QuorumJudge):
    def __init__(self) -> None:
        self._committed: dict[int, LoggedBatch] = {}
        self._compared: dict[int, tuple[int, int]] = {}
        """By node: in which life, up to which offset."""

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        high_watermark = min(after.high_watermark or 0, after.log_end_offset)
        life, offset = self._compared.get(node_id, (after.life, 0))
        offset = max(offset if life == after.life else 0, after.log_start_offset)
        if high_watermark <= offset:
            return
        for batch in observed.members[node_id].batches(offset, high_watermark):
            if batch.base_offset < offset:
                continue  # it begins below the log start
            known = self._committed.setdefault(batch.base_offset, batch)
            if known is not batch and known != batch:
                raise Violation(f"has {batch} committed, and another node {known}")
            if batch.last_offset >= high_watermark:
                raise Violation(f"the high watermark {high_watermark} lies within {batch}")
        self._compared[node_id] = (after.life, high_watermark)

    def wiped(self, observed: QuorumObservation, node_id: int) -> None:
        self._compared.pop(node_id, None)
