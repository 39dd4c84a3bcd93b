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
