"""Leader epochs: where each began, and where two logs part (rules A7-A9)."""

from __future__ import annotations

import pytest

from strandline.log.epochs import LeaderEpochs

UNKNOWN = (-1, -1)


def test_an_epoch_begins_once() -> None:
    epochs = LeaderEpochs()
    for epoch, offset in ((0, 0), (0, 5), (0, 9), (2, 10), (2, 15)):
        epochs.assign(epoch, offset)
    assert epochs.entries == [(0, 0), (2, 10)]
    assert epochs.latest == 2
    assert epochs.dirty


def test_an_epoch_without_a_record_gives_way_to_the_next_at_the_same_offset() -> None:
    epochs = LeaderEpochs([(1, 0), (2, 10)])
    epochs.assign(3, 10)
    assert epochs.entries == [(1, 0), (3, 10)]


@pytest.mark.parametrize(
    ("epoch", "offset", "after"),
    [
        (2, 5, [(1, 0), (2, 5)]),
        (2, 0, [(2, 0)]),
        (1, 20, [(1, 20)]),
        (4, 12, [(1, 0), (2, 10), (4, 12)]),
        (5, 20, [(1, 0), (2, 10), (5, 20)]),
    ],
)
def test_what_contradicts_a_newer_assignment_goes(epoch: int, offset: int, after: list[tuple[int, int]]) -> None:
    epochs = LeaderEpochs([(1, 0), (2, 10), (3, 20)])
    epochs.assign(epoch, offset)
    assert epochs.entries == after
    assert epochs.latest == after[-1][0]


def test_no_epoch_is_no_entry() -> None:
    epochs = LeaderEpochs()
    epochs.assign(-1, 0)
    epochs.assign(1, -1)
    assert epochs.entries == []
    assert not epochs.dirty


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, UNKNOWN),  # the follower knows no epoch
        (0, (0, 10)),  # before all we have: it must start from our log start
        (1, (1, 20)),
        (2, (1, 20)),  # we never saw epoch 2: the largest below it, and where that ended (KIP-279)
        (3, (3, 50)),
        (4, (3, 50)),
        (6, (6, 77)),  # the current epoch ends at the log end
        (7, UNKNOWN),  # newer than us: whoever asks knows more than we do
    ],
)
def test_where_an_epoch_ends(asked: int, answer: tuple[int, int]) -> None:
    epochs = LeaderEpochs([(1, 10), (3, 20), (6, 50)])
    assert epochs.end_offset_for(asked, 77) == answer


def test_a_log_without_epochs_can_say_nothing() -> None:
    assert LeaderEpochs().end_offset_for(0, 5) == UNKNOWN
    assert LeaderEpochs().epoch_at(0) == -1


def test_two_logs_meet_after_a_fast_leader_change() -> None:
    """KIP-279: each of two brokers led an epoch that the other never saw, and both wrote at the same offsets."""
    follower = LeaderEpochs([(0, 0), (1, 10)])  # wrote 10-14 as the leader of epoch 1
    leader = LeaderEpochs([(0, 0), (2, 10)])  # wrote 10-19 as the leader of epoch 2
    epoch, end_offset = leader.end_offset_for(1, 20)
    assert (epoch, end_offset) == (0, 10)
    own_epoch, own_end = follower.end_offset_for(epoch, 15)
    assert (own_epoch, min(own_end, end_offset)) == (0, 10)
    follower.truncate_from_end(10)
    assert follower.entries == [(0, 0)]


# The rules by name


def test_a7_a_follower_of_an_unknown_epoch_is_told_the_largest_below_it_and_its_end() -> None:
    """The leader never saw epoch 4, which the follower led alone: the two agree at most up to where epoch 3 ended."""
    leader = LeaderEpochs([(1, 0), (3, 20), (6, 50)])
    assert leader.end_offset_for(4, 77) == (3, 50)


def test_a7_no_divergence_while_epochs_and_ends_agree() -> None:
    """Diverging means: the epoch found is smaller than asked for, or ends before the fetch offset."""
    leader = LeaderEpochs([(1, 0), (3, 20), (6, 50)])
    for fetch_offset, last_fetched_epoch, diverges in (
        (50, 3, False),
        (51, 3, True),
        (20, 1, False),
        (21, 1, True),
        (77, 6, False),
        (78, 6, True),
        (40, 2, True),
        (5, 0, True),  # before all we have: told (0, 0), it starts from our log start
    ):
        epoch, end_offset = leader.end_offset_for(last_fetched_epoch, 77)
        assert (epoch < last_fetched_epoch or end_offset < fetch_offset) is diverges, (fetch_offset, last_fetched_epoch)


@pytest.mark.parametrize("asked", [-1, 7])
def test_a8_an_epoch_without_an_answer_is_undefined(asked: int) -> None:
    assert LeaderEpochs([(1, 0), (6, 50)]).end_offset_for(asked, 77) == UNKNOWN


def test_a8_a_log_without_epochs_has_no_end_for_any() -> None:
    assert [LeaderEpochs().end_offset_for(epoch, 5) for epoch in (-1, 0, 3)] == [UNKNOWN] * 3


@pytest.mark.parametrize(
    ("leader", "follower", "follower_end", "ends_at"),
    [
        ([(0, 0)], [(0, 0)], 12, 10),  # the follower is ahead in the same epoch
        ([(0, 0), (1, 8)], [(0, 0)], 10, 8),  # it has more of an epoch that ended earlier
        ([(0, 0), (2, 8)], [(0, 0), (1, 6)], 10, 6),  # it led an epoch that nobody saw
        ([(0, 0), (3, 4)], [(0, 0), (1, 6), (2, 8)], 10, 4),  # and two of them, beyond where the leader's went on
        ([(2, 5)], [(0, 0), (1, 3)], 7, 5),  # what they had in common is deleted at the leader, which begins at 5
        ([(0, 0), (1, 10)], [(0, 0)], 10, 10),  # nothing parts them
    ],
)
def test_a9_truncation_ends_where_two_logs_part(
    leader: list[tuple[int, int]], follower: list[tuple[int, int]], follower_end: int, ends_at: int
) -> None:
    """Ask, cut to the smaller of both ends, ask again, until the leader finds no divergence."""
    theirs, own = LeaderEpochs(leader), LeaderEpochs(follower)
    for _ in range(5):
        asked = own.latest
        epoch, end_offset = theirs.end_offset_for(asked, 10)
        if epoch == asked and end_offset >= follower_end:
            break
        _, own_end = own.end_offset_for(epoch, follower_end)
        follower_end = min(end_offset, own_end, follower_end)
        own.truncate_from_end(follower_end)
    assert follower_end == ends_at
    assert all(start < ends_at for _, start in own.entries)


def test_a9_a_cut_in_the_middle_of_an_epoch_keeps_its_entry() -> None:
    epochs = LeaderEpochs([(1, 0), (2, 10), (3, 20)])
    epochs.truncate_from_end(15)
    assert epochs.entries == [(1, 0), (2, 10)]
    assert epochs.end_offset_for(2, 15) == (2, 15)


def test_a12_an_epoch_begins_without_a_record() -> None:
    epochs = LeaderEpochs([(1, 0)])
    epochs.assign(2, 10)
    assert epochs.latest == 2
    assert epochs.end_offset_for(1, 10) == (1, 10)
    assert epochs.end_offset_for(2, 10) == (2, 10)


def test_a12_leader_after_leader_without_a_record_leaves_only_the_last() -> None:
    epochs = LeaderEpochs([(1, 0)])
    for epoch in (2, 3, 7):
        epochs.assign(epoch, 10)
    assert epochs.entries == [(1, 0), (7, 10)]


def test_a12_an_epoch_without_a_record_goes_when_the_log_is_cut_at_its_start() -> None:
    epochs = LeaderEpochs([(1, 0), (2, 10)])
    epochs.truncate_from_end(10)
    assert (epochs.entries, epochs.latest) == ([(1, 0)], 1)


@pytest.mark.parametrize(("offset", "epoch"), [(9, -1), (10, 1), (19, 1), (20, 3), (500, 3)])
def test_the_epoch_of_an_offset(offset: int, epoch: int) -> None:
    assert LeaderEpochs([(1, 10), (3, 20)]).epoch_at(offset) == epoch


@pytest.mark.parametrize(
    ("end", "left"),
    [(0, []), (10, []), (11, [(1, 10)]), (20, [(1, 10)]), (21, [(1, 10), (3, 20)]), (99, [(1, 10), (3, 20)])],
)
def test_cutting_the_end(end: int, left: list[tuple[int, int]]) -> None:
    epochs = LeaderEpochs([(1, 10), (3, 20)])
    epochs.truncate_from_end(end)
    assert epochs.entries == left
    assert epochs.latest == (left[-1][0] if left else -1)
    assert epochs.dirty == (len(left) < 2)


@pytest.mark.parametrize(
    ("start", "left"),
    [
        (5, [(1, 10), (3, 20), (4, 30)]),
        (10, [(1, 10), (3, 20), (4, 30)]),
        (15, [(1, 15), (3, 20), (4, 30)]),
        (20, [(3, 20), (4, 30)]),
        (25, [(3, 25), (4, 30)]),
        (99, [(4, 99)]),
    ],
)
def test_cutting_the_start(start: int, left: list[tuple[int, int]]) -> None:
    epochs = LeaderEpochs([(1, 10), (3, 20), (4, 30)])
    epochs.truncate_from_start(start)
    assert epochs.entries == left
    assert epochs.latest == 4
    assert epochs.dirty == (start > 10)
