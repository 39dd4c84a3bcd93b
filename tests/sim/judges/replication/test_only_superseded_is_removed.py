from __future__ import annotations

from typing import Any

from strandline.histories.judges.replication.log_matching import LogMatching
from strandline.histories.judges.replication.only_superseded_is_removed import OnlySupersededIsRemoved
from strandline.histories.judges.replication.only_written_is_kept import OnlyWrittenIsKept
from strandline.histories.replica_observation import ReplicaJudge
from strandline.records.batch import BatchBuilder, decode
from strandline.records.header import assign, read_header
from strandline.records.rewrite import retain

from .stage import BROKERS, Stage, broken


class Both(OnlySupersededIsRemoved):
    """Beside what is committed, which LogMatching finds out."""

    def __init__(self) -> None:
        super().__init__()
        self._committed = LogMatching()

    def changed(self, *event: Any) -> None:
        self._committed.changed(*event)

    def __repr__(self) -> str:
        return OnlySupersededIsRemoved.__name__


def compacted(judge: ReplicaJudge) -> Stage:
    """Three batches of two: k=a j=b, k=c i=d, h=e and the tombstone of i, committed by all."""
    story = Stage(judge)
    story._configs[2, "t"]["cleanup.policy"] = "compact"
    story.publish()
    for node_id in BROKERS:
        for pairs in (("k=a", "j=b"), ("k=c", "i=d"), ("h=e", "i")):
            write(story, node_id, *pairs)
    for node_id in BROKERS:
        story.commit(node_id, 6)
    return story


def write(story: Stage, node_id: int, *pairs: str, epoch: int = 0) -> None:
    builder = BatchBuilder()
    for pair in pairs:
        key, _, value = pair.partition("=")
        builder.append(key.encode(), value.encode() or None, timestamp=1)
    batch = builder.build()
    log: Any = story.partition(node_id).log
    assign(batch, log.log_end_offset, epoch)
    log.inode.data += batch
    log._ends.append(log.log_end_offset + len(pairs))
    log._positions.append(len(log.inode.data))
    story.look(node_id)


def clean(story: Stage, node_id: int, *keep: int) -> None:
    """Only these offsets are left when the broker starts again."""
    log: Any = story.partition(node_id).log
    left, position = bytearray(), 0
    while position < len(log.inode.data):
        header = read_header(log.inode.data, position)
        batch = bytes(log.inode.data[position : position + header.size_bytes])
        records = [record for record in decode(batch) if record.offset in keep]
        if len(records) == header.records_count:
            left += batch
        elif records:
            left += retain(header, records)
        position += header.size_bytes
    log.inode.data[:] = left
    log._positions[-1] = len(left)
    story.restart(node_id)


def test_a_deposed_leader_that_cleans_has_not_lost_what_it_never_had() -> None:
    story = compacted(Both())
    for node_id in (1, 2):
        write(story, node_id, "g=new", epoch=1)
        story.commit(node_id, 7)
    write(story, 3, "g=old", "g=newer")
    clean(story, 3, 1, 2, 4, 7)


def test_superseded_records_and_tombstones_may_go() -> None:
    story = compacted(Both())
    clean(story, 1, 1, 2, 4, 5)
    clean(story, 2, 1, 2, 4)


def test_the_newest_of_a_key_may_not() -> None:
    story = compacted(Both())
    with broken(OnlySupersededIsRemoved):
        clean(story, 1, 1, 4, 5)


def test_nor_a_whole_batch_with_one() -> None:
    story = compacted(Both())
    with broken(OnlySupersededIsRemoved):
        clean(story, 1, 2, 3, 4, 5)


def test_what_is_left_of_a_batch_is_a_part_of_it() -> None:
    story = compacted(OnlyWrittenIsKept())
    clean(story, 1, 1, 2, 4)


def test_and_other_topics_keep_every_byte() -> None:
    story = compacted(OnlyWrittenIsKept())
    story._configs[2, "t"]["cleanup.policy"] = "delete"
    story.publish()
    with broken(OnlyWrittenIsKept):
        clean(story, 1, 1, 2, 4)
