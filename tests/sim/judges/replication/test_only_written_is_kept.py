from __future__ import annotations

from strandline.histories.judges.replication.only_written_is_kept import OnlyWrittenIsKept

from .stage import broken, committed_by_all, stage


def test_followers_hold_what_their_leader_wrote() -> None:
    story = stage(OnlyWrittenIsKept)
    committed_by_all(story, "a", "b")
    story.append(1, "c", epoch=1)
    story.append(2, "c", epoch=1)
    with broken(OnlyWrittenIsKept):
        story.append(3, "x", epoch=1)


def test_nothing_corrupt_is_written() -> None:
    story = stage(OnlyWrittenIsKept)
    story.partition(1).log.append("a")
    story.partition(1).log.inode.data[-1] ^= 1
    with broken(OnlyWrittenIsKept):
        story.look(1)


def test_what_rotted_on_one_disk_does_not_get_to_another() -> None:
    story = stage(OnlyWrittenIsKept)
    story.append(1, "a")
    story.partition(1).log.inode.data[-2] ^= 1
    story.observed.note_rot(1, "t-0")
    story.restart(1)
    story.partition(2).log.inode.data += story.partition(1).log.inode.data
    story.partition(2).log._ends.append(1)
    with broken(OnlyWrittenIsKept):
        story.look(2)


def test_a_torn_batch_is_not_kept_after_a_crash() -> None:
    story = stage(OnlyWrittenIsKept)
    story.append(1, "a")
    story.partition(1).log.inode.data[-2] ^= 1
    with broken(OnlyWrittenIsKept):
        story.restart(1, power_lost=True)


def test_the_same_offset_may_be_written_again_in_another_epoch() -> None:
    story = stage(OnlyWrittenIsKept)
    story.append(1, "a")
    story.cut(1, 0)
    story.append(1, "b", epoch=1)
