"""Producer state: duplicates, gaps, fenced epochs, open transactions (rules C1-C4)."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.log.producers import SEQUENCE_MAX, CompletedTxn, Producers

PID = 42


class Story:
    """A partition that one producer, or a few, write to."""

    def __init__(self) -> None:
        self.producers = Producers()
        self.end_offset = 0

    def send(
        self, first_sequence: int, count: int = 1, *, pid: int = PID, epoch: int = 0, txn: bool = False, at: int = 1000
    ) -> int:
        """The base offset of the batch, whether it is new or was there before."""
        last_sequence = (first_sequence + count - 1) % (SEQUENCE_MAX + 1)
        duplicate = self.producers.check_client_batch(pid, epoch, first_sequence, last_sequence, txn)
        if duplicate is not None:
            return duplicate.first_offset
        first_offset, self.end_offset = self.end_offset, self.end_offset + count
        self.producers.add_batch(pid, epoch, last_sequence, first_offset, self.end_offset - 1, at, txn)
        return first_offset

    def end(self, *, pid: int = PID, epoch: int = 0, aborted: bool = False) -> CompletedTxn | None:
        offset, self.end_offset = self.end_offset, self.end_offset + 1
        return self.producers.end_txn(pid, epoch, 3, offset, 1000, aborted)

    def refused(self, code: ErrorCode, first_sequence: int, **fields: int) -> None:
        with pytest.raises(KafkaError) as error:
            self.send(first_sequence, **fields)
        assert error.value.code is code


@pytest.fixture
def story() -> Story:
    return Story()


def test_each_of_the_last_five_batches_is_recognised(story: Story) -> None:
    offsets = [story.send(10 * i, 10) for i in range(6)]
    for i in (1, 5, 3, 2, 4):
        assert story.send(10 * i, 10) == offsets[i]
    assert story.end_offset == 60
    story.refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0, count=10)  # the sixth last is forgotten


@pytest.mark.parametrize(("first", "count"), [(0, 9), (1, 9), (5, 10), (0, 11)])
def test_a_batch_that_overlaps_another_is_no_duplicate(story: Story, first: int, count: int) -> None:
    story.send(0, 10)
    story.refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, first, count=count)


@pytest.mark.parametrize("first", [9, 11, 20, SEQUENCE_MAX])
def test_txn_p2_the_next_sequence_follows_the_last(story: Story, first: int) -> None:
    story.send(0, 10)
    story.refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, first)
    assert story.send(10) == 10


def test_sequences_wrap_between_batches(story: Story) -> None:
    story.send(SEQUENCE_MAX - 1, 2)
    assert story.send(0, 3) == 2
    assert story.send(0, 3) == 2
    assert story.send(SEQUENCE_MAX - 1, 2) == 0


def test_sequences_wrap_within_a_batch(story: Story) -> None:
    assert story.send(SEQUENCE_MAX - 1, 5) == 0  # the last one is 2
    assert story.send(SEQUENCE_MAX - 1, 5) == 0
    story.refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 2)
    assert story.send(3) == 5


def test_txn_p2_an_older_epoch_never_writes_again(story: Story) -> None:
    story.send(0, epoch=3)
    story.refused(ErrorCode.INVALID_PRODUCER_EPOCH, 1, epoch=2)
    story.refused(ErrorCode.INVALID_PRODUCER_EPOCH, 0, epoch=2)


def test_txn_p2_a_new_epoch_starts_at_sequence_zero(story: Story) -> None:
    story.send(0, 5)
    story.refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 5, epoch=1)
    assert story.send(0, 5, epoch=1) == 5  # no duplicate of the old epoch's first batch
    story.refused(ErrorCode.INVALID_PRODUCER_EPOCH, 0, count=5, epoch=0)


def test_what_a_new_epoch_sends_is_no_duplicate_of_the_old(story: Story) -> None:
    story.send(0, 5)
    story.send(5, 5)
    story.send(0, 5, epoch=1)
    assert story.send(5, 5, epoch=1) == 15


def test_an_unknown_producer_may_go_on_anywhere(story: Story) -> None:
    assert story.send(77) == 0
    assert story.send(78) == 1


def test_txn_p23_after_a_marker_of_a_newer_epoch_sequences_start_again(story: Story) -> None:
    story.send(0, 3, txn=True)
    story.end(epoch=1)
    story.refused(ErrorCode.INVALID_PRODUCER_EPOCH, 3, epoch=0)
    story.refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 3, epoch=1)
    assert story.send(0, epoch=1) == 4


def test_txn_p2_a_plain_batch_may_not_enter_an_open_transaction(story: Story) -> None:
    story.send(0, txn=True)
    story.refused(ErrorCode.INVALID_TXN_STATE, 1)
    story.end()
    assert story.send(1) == 2


def test_stable_is_what_lies_before_the_oldest_open_transaction(story: Story) -> None:
    producers = story.producers
    assert producers.first_unstable_offset(0) is None
    story.send(0, 5)
    story.send(0, 2, pid=1, txn=True)
    story.send(0, 2, pid=2, txn=True)
    story.send(2, 2, pid=1, txn=True)
    assert producers.first_unstable_offset(story.end_offset) == 5
    assert story.end(pid=1) == CompletedTxn(1, 5, 11, False)
    assert producers.first_unstable_offset(12) == 7
    assert story.end(pid=2, aborted=True) == CompletedTxn(2, 7, 12, True)
    assert producers.first_unstable_offset(13) is None


def test_an_end_that_is_not_yet_replicated_is_not_stable(story: Story) -> None:
    story.send(0, 5, txn=True)
    story.end()
    assert story.producers.first_unstable_offset(5) == 0
    assert story.producers.first_unstable_offset(6) is None


def test_what_was_stable_when_a_transaction_ended(story: Story) -> None:
    story.send(0, pid=1, txn=True)
    story.send(0, pid=2, txn=True)
    second = story.end(pid=2, aborted=True)
    assert second is not None
    assert story.producers.last_stable_offset_before(second) == 0
    first = story.end(pid=1, aborted=True)
    assert first is not None
    assert story.producers.last_stable_offset_before(first) == 4


def test_a_marker_without_a_transaction_ends_nothing(story: Story) -> None:
    assert story.end(pid=9) is None
    story.send(0)
    assert story.end() is None


def test_silent_producers_are_forgotten_but_not_within_a_transaction(story: Story) -> None:
    story.send(0, pid=1, at=1000)
    story.send(0, pid=2, at=1001)
    story.send(0, pid=3, at=0, txn=True)
    story.producers.expire(now_ms=2000, expiration_ms=1000)
    assert list(story.producers.by_id) == [2, 3]
    assert story.send(500, pid=1) == 3


def test_only_so_many_are_remembered_and_the_silent_ones_go() -> None:
    """SEC-L10: producer ids are free to have. One that is forgotten may go on, as after its expiration."""
    story = Story()
    story.producers.ids_max = 20
    story.send(0, pid=7, at=1, txn=True)
    for pid in range(100, 119):
        story.send(0, pid=pid, at=pid)
    assert len(story.producers.by_id) == 20
    story.send(1, pid=100, at=500)
    story.send(0, pid=200, at=501)
    assert story.producers.forgotten_early == 2
    assert {101, 102}.isdisjoint(story.producers.by_id), "they were silent longest, but for who has a transaction open"
    assert {7, 100, 103, 200} <= story.producers.by_id.keys()
    story.send(1, pid=101, at=502)
    story.refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 7, pid=100)
    for pid in range(1000, 3000):
        story.send(0, pid=pid, at=pid)
    assert len(story.producers.by_id) <= 20


def test_sec_l10_no_more_than_nine_tenths_have_a_transaction_open() -> None:
    """They can not be forgotten; so those that come without one find room, and are not looked for in vain."""
    story = Story()
    story.producers.ids_max = 20
    for pid in range(18):
        story.producers.check_open(pid)
        story.send(0, pid=pid, txn=True)
    with pytest.raises(KafkaError) as refused:
        story.producers.check_open(18)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    story.producers.check_open(17)
    for pid in range(100, 200):
        story.send(0, pid=pid)
    assert len(story.producers.by_id) <= 20
    story.end(pid=3)
    story.producers.check_open(18)


def test_sec_l10_a_follower_takes_what_its_leader_took() -> None:
    story = Story()
    story.producers.ids_max = 3
    for pid in range(10):
        story.send(0, pid=pid, txn=True)
    assert len(story.producers.by_id) == 10
    story.producers.end_offset = 10
    story.producers.check_invariants()


def test_what_is_stable_is_found_without_looking_at_all_that_is_open() -> None:
    """Every Fetch asks for it, and a hundred thousand may be open."""

    class Counting(OrderedDict[int, int]):
        looked_at = 0

        def values(self) -> Iterator[int]:  # type: ignore[override]
            for value in super().values():
                Counting.looked_at += 1
                yield value

    story = Story()
    for pid in range(100):
        story.send(0, pid=pid, txn=True)
    story.producers._open_txns = Counting(story.producers._open_txns)
    assert story.producers.first_unstable_offset(0) == 0
    for pid in range(50):
        story.end(pid=pid)
    assert story.producers.first_unstable_offset(1000) == 50
    assert Counting.looked_at == 2


def test_adopted_transactions_are_in_the_order_in_which_they_began() -> None:
    story, other = Story(), Story()
    for pid in (3, 1, 2):
        story.send(0, pid=pid, txn=True)
    producers = [story.producers.by_id[pid] for pid in (1, 2, 3)]
    other.producers.adopt(producers[:2])
    other.producers.adopt(producers[2:])
    assert list(other.producers.open_txns.items()) == [(3, 0), (1, 1), (2, 2)]
    other.producers.forget_open_below(2)
    assert list(other.producers.open_txns) == [2]
    assert other.producers.by_id[3].current_txn_first_offset == -1


def test_who_wrote_last_the_longest_ago_goes_whatever_time_it_claims() -> None:
    """Timestamps are the clients' own: one that claims next year would outlive every honest producer."""
    story = Story()
    story.producers.ids_max = 20
    for pid in range(100, 110):
        story.send(0, pid=pid, at=10**15)
    for pid in range(200, 210):
        story.send(0, pid=pid, at=5)
    story.send(1, pid=100, at=1)
    story.send(0, pid=300, at=0)
    assert story.producers.forgotten_early == 2
    assert {101, 102}.isdisjoint(story.producers.by_id)
    assert {100, 300, *range(103, 110), *range(200, 210)} == story.producers.by_id.keys()


def test_what_is_read_again_from_a_cleaned_log_may_have_gaps() -> None:
    producers = Producers()
    producers.add_batch(PID, 0, 4, 0, 4, 1000, False)
    producers.add_batch(PID, 0, 9, 7, 9, 1000, False)  # what lay between was cleaned
    producers.end_offset = 10
    producers.check_invariants()


def test_batches_out_of_order_break_the_invariant() -> None:
    producers = Producers()
    producers.add_batch(PID, 0, 4, 5, 9, 1000, False)
    producers.add_batch(PID, 0, 9, 5, 9, 1000, False)
    producers.end_offset = 10
    with pytest.raises(AssertionError, match="42"):
        producers.check_invariants()


def test_when_the_producer_of_the_oldest_open_transaction_last_wrote(story: Story) -> None:
    assert story.producers.oldest_open_timestamp == -1
    story.send(0, pid=1, txn=True, at=1000)
    story.send(0, pid=2, txn=True, at=2000)
    assert story.producers.oldest_open_timestamp == 1000
    story.send(1, pid=1, txn=True, at=3000)
    assert story.producers.oldest_open_timestamp == 3000
    story.end(pid=1)
    assert story.producers.oldest_open_timestamp == 2000
    story.end(pid=2)
    assert story.producers.oldest_open_timestamp == -1
