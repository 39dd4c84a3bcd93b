# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.groups.offsets.committed_offsets import CommittedOffsets
from strandline.groups.records import OffsetCommitKey, OffsetCommitValue

KEY = OffsetCommitKey(group="g", topic="t", partition=0)
OTHER = OffsetCommitKey(group="g", topic="t", partition=1)


def value(offset: int) -> OffsetCommitValue:
    return OffsetCommitValue(offset=offset, metadata="", commit_timestamp=0)


def committed(offsets: CommittedOffsets, key: OffsetCommitKey = KEY) -> int | None:
    found = offsets.get(key.group, key.topic, key.partition)
    return None if found is None else found.offset


def test_the_last_commit_counts():
    offsets = CommittedOffsets()
    assert committed(offsets) is None
    offsets.replay(KEY, value(5))
    offsets.replay(KEY, value(3))
    assert committed(offsets) == 3
    assert offsets.of_group("g") == {"t": {0: value(3)}}
    assert offsets.count == 1


def test_nothing_is_left_of_what_was_removed():
    offsets = CommittedOffsets()
    offsets.replay(KEY, value(5))
    offsets.replay(OTHER, value(6), producer_id=7)
    offsets.replay(KEY, None)
    offsets.replay(OTHER, None)
    offsets.replay(OTHER, None)
    assert offsets.count == 0
    assert offsets.of_group("g") == {}
    assert list(offsets.groups()) == []
    assert not offsets.has_open("g")
    offsets.end_transaction(7, commit=True)
    assert committed(offsets, OTHER) is None


def test_an_offset_in_a_transaction_counts_once_the_transaction_is_committed():
    offsets = CommittedOffsets()
    offsets.replay(KEY, value(5))
    offsets.replay(KEY, value(9), producer_id=7)
    assert committed(offsets) == 5
    assert offsets.is_open("g", "t", 0)
    assert not offsets.is_open("g", "t", 1)
    offsets.end_transaction(7, commit=True)
    assert committed(offsets) == 9
    assert not offsets.has_open("g")


def test_an_aborted_transaction_leaves_nothing():
    offsets = CommittedOffsets()
    offsets.replay(KEY, value(9), producer_id=7)
    assert list(offsets.groups()) == ["g"]
    offsets.end_transaction(7, commit=False)
    offsets.end_transaction(7, commit=True)
    assert committed(offsets) is None
    assert list(offsets.groups()) == []


def test_a_transaction_that_ends_late_does_not_undo_a_commit_that_came_after_its_own():
    offsets = CommittedOffsets()
    offsets.replay(KEY, value(1), producer_id=7)
    offsets.replay(KEY, value(2))
    offsets.end_transaction(7, commit=True)
    assert committed(offsets) == 2


def test_of_two_transactions_the_one_that_wrote_later_counts_whichever_ends_last():
    offsets = CommittedOffsets()
    offsets.replay(KEY, value(1), producer_id=7)
    offsets.replay(KEY, value(2), producer_id=8)
    offsets.end_transaction(8, commit=True)
    offsets.end_transaction(7, commit=True)
    assert committed(offsets) == 2


def test_what_has_to_be_removed_is_named_once():
    offsets = CommittedOffsets()
    offsets.replay(KEY, value(5))
    offsets.replay(KEY, value(6), producer_id=7)
    offsets.replay(OTHER, value(7), producer_id=7)
    offsets.replay(OTHER, value(8), producer_id=8)
    assert list(offsets.keys("g")) == [KEY, OTHER]
    assert [(key.partition, found.offset) for key, found in offsets.items("g")] == [(0, 5), (0, 6), (1, 7), (1, 8)]


keys = st.sampled_from([KEY, OTHER, OffsetCommitKey(group="h", topic="t", partition=0)])
producers = st.sampled_from([7, 8, 9])
events = st.one_of(
    st.tuples(st.just("commit"), keys),
    st.tuples(st.just("remove"), keys),
    st.tuples(st.just("pending"), keys, producers),
    st.tuples(st.just("end"), producers, st.booleans()),
)


@given(st.lists(events, max_size=40))
def test_it_is_what_the_log_adds_up_to(told):
    """Against a model that reads the whole log for each partition."""
    offsets = CommittedOffsets()
    for number, event in enumerate(told):
        match event:
            case ("commit", key):
                offsets.replay(key, value(number))
            case ("remove", key):
                offsets.replay(key, None)
            case ("pending", key, producer):
                offsets.replay(key, value(number), producer)
            case ("end", producer, commit):
                offsets.end_transaction(producer, commit=commit)

    expected, open_ = {}, set()
    for key in {event[1] for event in told if event[0] != "end"}:
        decided, pending = None, {}
        for number, event in enumerate(told):
            match event:
                case ("commit", k) if k == key:
                    decided = number
                case ("remove", k) if k == key:
                    decided, pending = None, {}
                case ("pending", k, producer) if k == key:
                    pending[producer] = number
                case ("end", producer, commit):
                    written = pending.pop(producer, None)
                    if commit and written is not None and (decided is None or written > decided):
                        decided = written
        if decided is not None:
            expected[key] = decided
        if pending:
            open_.add(key)

    for key in [KEY, OTHER, OffsetCommitKey(group="h", topic="t", partition=0)]:
        assert committed(offsets, key) == expected.get(key)
        assert offsets.is_open(key.group, key.topic, key.partition) == (key in open_)
    assert offsets.count == len(expected)
    assert offsets._decided.keys() <= open_, "remembered for longer than it matters"
    assert set(offsets.groups()) == {key.group for key in {*expected, *open_}}


@pytest.mark.parametrize(
    ("break_it", "what"),
    [
        (lambda offsets: setattr(offsets, "count", 2), "1 offsets are committed, not 2"),
        (lambda offsets: offsets._committed.update(h={}), "a group without offsets"),
        (lambda offsets: offsets._committed["g"].update(u={}), "a topic without offsets"),
        (lambda offsets: offsets._pending.update({8: {}}), "a transaction without offsets"),
        (lambda offsets: offsets._pending.clear(), "pending set"),
        (lambda offsets: offsets._open["g"]["t", 1].add(8), "open are"),
        (lambda offsets: offsets._open.update(h={}), "a group without open offsets"),
        (lambda offsets: offsets._decided.update({KEY: 1}), "no transaction is open"),
    ],
)
def test_offsets_that_are_not_as_they_should_be(break_it, what):
    offsets = CommittedOffsets()
    offsets.replay(KEY, value(5))
    offsets.replay(OTHER, value(6), producer_id=7)
    offsets.check_invariants()
    break_it(offsets)
    with pytest.raises(AssertionError, match=what):
        offsets.check_invariants()
