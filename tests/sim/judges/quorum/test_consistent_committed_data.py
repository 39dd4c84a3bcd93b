from __future__ import annotations

from strandline.histories.batches import LoggedBatch
from strandline.histories.judges.quorum.consistent_committed_data import ConsistentCommittedData

from .stage import broken, stage


def test_an_offset_has_one_batch_on_all_nodes_once_it_is_committed() -> None:
    story = stage(ConsistentCommittedData)
    story.shelves[1].log = [LoggedBatch(0, 2, 1, 11), LoggedBatch(3, 3, 1, 12)]
    story.shelves[2].log = [LoggedBatch(0, 2, 1, 11), LoggedBatch(3, 3, 2, 99)]
    story.see(1, log_end_offset=4, high_watermark=4)
    story.see(2, log_end_offset=4, high_watermark=3)
    with broken(ConsistentCommittedData):
        story.see(2, high_watermark=4)
