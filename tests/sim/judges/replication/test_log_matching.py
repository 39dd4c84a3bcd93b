from __future__ import annotations

from strandline.histories.judges.replication.log_matching import LogMatching

from .stage import KEY, broken, committed_by_all, stage


def test_what_is_committed_is_the_same_everywhere() -> None:
    story = stage(LogMatching)
    committed_by_all(story, "a", "b")
    committed_by_all(story, "c")
    assert story.observed.committed[KEY].end_offset == 3


def test_above_the_watermark_logs_may_differ_and_below_they_may_not() -> None:
    story = stage(LogMatching)
    story.append(1, "a")
    story.append(2, "b")
    story.commit(1, 1)
    with broken(LogMatching):
        story.commit(2, 1)


def test_every_byte_is_compared() -> None:
    story = stage(LogMatching)
    story.append(1, "a")
    story.append(2, "a")
    story.partition(3).log.append("a")
    story.partition(3).log.inode.data[-2] ^= 1  # behind the checksum, which stays as it was
    story.look(3)
    story.commit(1, 1)
    story.commit(2, 1)
    with broken(LogMatching):
        story.commit(3, 1)


def test_a_watermark_does_not_part_a_batch() -> None:
    story = stage(LogMatching)
    story.append(1, "a", "b")
    with broken(LogMatching):
        story.commit(1, 1)


def test_a_restarted_replica_is_compared_again() -> None:
    story = stage(LogMatching)
    committed_by_all(story, "a")
    story.members[2].partition.log.inode.data[-2] ^= 1
    story.restart(2)
    with broken(LogMatching):
        story.commit(2, 1)


def test_what_rotted_at_rest_is_no_other_log() -> None:
    story = stage(LogMatching)
    committed_by_all(story, "a")
    story.members[2].partition.log.inode.data[-2] ^= 1
    story.observed.note_rot(2, "t-0")
    story.restart(2)
    story.commit(2, 1)
