"""What is below the high watermark is the same everywhere, for ever (I4, I9, ConsistentCommittedData)."""

from __future__ import annotations

from strandline.histories.sight import Batch, Checker, Seen, Sight, Violation


class CommittedIsKept(Checker):
    """No process cuts what it knows to be committed (D10)."""

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        if before is None or before.life != after.life or before.high_watermark is None:
            return
        if after.log_end_offset < min(before.log_end_offset, before.high_watermark):
            raise Violation(f"the log ends at {after.log_end_offset}, and {before.high_watermark} is committed")


class ConsistentCommittedData(Checker):
    """Each offset below anybody's high watermark has one batch. Brokers are looked at as controllers are."""

    def __init__(self) -> None:
        self._committed: dict[int, Batch] = {}
        self._compared: dict[int, tuple[int, int]] = {}
        """By node: in which life, up to which offset."""

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        high_watermark = min(after.high_watermark or 0, after.log_end_offset)
        life, offset = self._compared.get(node_id, (after.life, 0))
        offset = max(offset if life == after.life else 0, after.log_start_offset)
        if high_watermark <= offset:
            return
        for batch in sight.storage[node_id].batches(offset, high_watermark):
            if batch.base_offset < offset:
                continue  # it begins below the log start
            known = self._committed.setdefault(batch.base_offset, batch)
            if known != batch:
                raise Violation(f"has {batch} committed, and another node {known}")
            if batch.last_offset >= high_watermark:
                raise Violation(f"the high watermark {high_watermark} lies within {batch}")
        self._compared[node_id] = (after.life, high_watermark)

    def wiped(self, sight: Sight, node_id: int) -> None:
        self._compared.pop(node_id, None)
