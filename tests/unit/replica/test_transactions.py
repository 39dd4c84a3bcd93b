"""Transactions at a partition: what they hide, how they end, who may begin one."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.log.verification_guards import VerificationGuard
from strandline.records.control import EPOCH_MAX
from strandline.records.header import iterate
from strandline.replica.partition import READ_COMMITTED, READ_UNCOMMITTED

from .bench import ME, NOW_MS, Bench, as_leader_wrote, image

ALONE = image(replicas=(ME,), isr=(ME,))
OLD, NEW = 0, 2


def alone() -> Bench:
    return Bench(ALONE)


def send(on: Bench, epoch: int = 0, sequence: int = 0, count: int = 1) -> int:
    return on.append(count, producer_id=1, producer_epoch=epoch, base_sequence=sequence, transactional=True)


def refused(on: Bench, epoch: int = 0, *, coordinator_epoch: int = 0, version: int = OLD) -> ErrorCode:
    end = on.partition.log.log_end_offset
    with pytest.raises(KafkaError) as error:
        on.marker(epoch, coordinator_epoch=coordinator_epoch, version=version)
    assert on.partition.log.log_end_offset == end, "nothing was written"
    return error.value.code


# Readers


def test_txn_p7_what_is_open_and_what_is_ended_above_the_watermark_is_not_stable() -> None:
    on = Bench(image(isr=(1, 2)))
    on.append()
    send(on)
    on.fetched(2, 2)
    assert on.partition.last_stable_offset == 1
    on.marker()
    assert on.partition.last_stable_offset == 1, "the marker is not committed"
    on.fetched(2, 3)
    assert on.partition.last_stable_offset == 3


def test_txn_p7_deleting_records_of_an_open_transaction_moves_the_stable_offset_along() -> None:
    """And its marker still ends it (TXN-P33)."""
    on = alone()
    on.append()
    send(on, count=2)
    on.append()
    on.partition.delete_records(2)
    assert on.partition.last_stable_offset == 2
    assert on.partition.readable_end(READ_UNCOMMITTED) == 4
    on.marker()
    assert on.partition.last_stable_offset == 5


def test_txn_p10_a_transaction_that_is_open_over_an_election_does_not_hide_the_end() -> None:
    on = Bench(image(2))
    data = as_leader_wrote((0, 1, 5))
    on.take(records=data, high_watermark=0, log_start_offset=0)
    on.partition.apply(image(1, epoch=6, partition_epoch=2))
    send(on)
    assert on.partition.is_behind_its_epoch
    for replica in (2, 3):
        on.fetched(replica, 2)
    assert on.partition.readable_end(READ_COMMITTED) == 1
    on.partition.apply(image(1, epoch=7, partition_epoch=3))
    assert not on.partition.is_behind_its_epoch, "by the high watermark"


# Markers


def test_txn_p20_a_marker_is_a_control_batch_of_78_bytes() -> None:
    on = alone()
    send(on)
    on.marker(commit=False, coordinator_epoch=9)
    data = on.partition.log.read(1, 1000, 2, min_one=True)
    [(_, header)] = iterate(data)
    assert len(data) == 78
    assert (header.is_control, header.is_transactional, header.base_sequence) == (True, True, -1)
    assert (header.producer_id, header.producer_epoch) == (1, 0)
    assert on.partition.log.producers.by_id[1].coordinator_epoch == 9
    [aborted] = on.partition.log.aborted_between(0, 2)
    assert (aborted.first_offset, aborted.last_offset, aborted.last_stable_offset) == (0, 1, 2)


@pytest.mark.parametrize(
    ("version", "epoch", "is_taken"),
    [(OLD, 4, False), (OLD, 5, True), (OLD, 6, True), (NEW, 4, False), (NEW, 5, False), (NEW, 6, True)],
)
def test_txn_p21_the_epoch_of_a_marker_while_a_transaction_is_open(version: int, epoch: int, is_taken: bool) -> None:
    on = alone()
    send(on, epoch=5)
    if is_taken:
        on.marker(epoch, version=version)
        assert not on.partition.log.producers.is_in_transaction(1, 5)
    else:
        assert refused(on, epoch, version=version) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert on.partition.log.producers.is_in_transaction(1, 5)


def test_txn_t40_each_transaction_has_begun_at_a_time_of_its_own() -> None:
    on = alone()
    for sequence in (0, 1):
        send(on, sequence=sequence)
        assert on.partition.log.txn_began_ms == {1: NOW_MS}
        on.marker()
        assert on.partition.log.txn_began_ms == {}


def test_txn_p21_a_repeated_marker_is_written_again_and_ends_nothing() -> None:
    """As that of a coordinator that has just taken over (TXN-TF3)."""
    on = alone()
    send(on, epoch=5)
    on.marker(6, version=NEW)
    on.marker(6, version=NEW)
    assert on.offsets == (3, 3)
    assert on.partition.log.aborted_between(0, 3) == []
    assert refused(on, 5, version=NEW) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_txn_p21_a_late_marker_does_not_end_the_next_transaction() -> None:
    on = alone()
    send(on, epoch=5)
    on.marker(6, version=NEW)
    send(on, epoch=6)
    assert refused(on, 6, version=NEW) is ErrorCode.INVALID_PRODUCER_EPOCH
    on.marker(7, version=NEW)


def test_txn_p21_the_last_epoch_ends_itself() -> None:
    on = alone()
    send(on, epoch=EPOCH_MAX)
    on.marker(EPOCH_MAX, version=NEW)
    assert not on.partition.log.producers.is_in_transaction(1, EPOCH_MAX)


def test_txn_p21_an_unknown_producer_takes_any() -> None:
    on = alone()
    on.marker(3, version=NEW)
    assert on.partition.log.producers.by_id[1].epoch == 3


@pytest.mark.parametrize("version", [OLD, NEW])
def test_txn_p21_a_marker_of_no_producer_is_refused(version: int) -> None:
    on = alone()
    assert refused(on, -1, version=version) is ErrorCode.INVALID_PRODUCER_EPOCH
    with pytest.raises(KafkaError) as nobody:
        on.partition.append_marker((-1, 0), False, 0, 0, transaction_version=version)
    assert nobody.value.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert on.offsets == (0, 0)


def test_txn_p22_an_older_coordinator_is_refused_and_the_same_is_not() -> None:
    on = alone()
    send(on)
    on.marker(coordinator_epoch=4)
    send(on, sequence=1)
    assert refused(on, coordinator_epoch=3) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    on.marker(coordinator_epoch=4)
    on.marker(coordinator_epoch=5)


def test_txn_p24_a_marker_needs_as_many_replicas_in_sync_as_records_do() -> None:
    on = Bench(image(isr=(1,)), min_isr=2)
    send(on)
    assert refused(on) is ErrorCode.NOT_ENOUGH_REPLICAS


def test_a_marker_goes_to_the_leader() -> None:
    on = Bench(image(2))
    assert refused(on) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_txn_p23_at_an_equal_epoch_the_sequences_go_on_and_at_a_newer_one_they_begin_again() -> None:
    """Below version 2 a client's next transaction has the same epoch, and its sequences go on."""
    on = alone()
    send(on, count=3)
    on.marker()
    send(on, sequence=3)
    on.marker(1)
    with pytest.raises(KafkaError) as error:
        send(on, epoch=1, sequence=4)
    assert error.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(on, epoch=1, sequence=0)


# Who may begin one


def begin(on: Bench, guard: VerificationGuard | None, epoch: int = 0, sequence: int = 0) -> ErrorCode:
    try:
        on.append(guard=guard, transactional=True, producer_id=1, producer_epoch=epoch, base_sequence=sequence)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def note(on: Bench, epoch: int = 0, sequence: int = 0, *, bumps: bool = False) -> VerificationGuard:
    return on.partition.log.guards.note(1, epoch, sequence, bumps_epoch=bumps, now_ms=NOW_MS)


def test_txn_p3_a_transaction_that_is_open_in_this_epoch_needs_no_guard() -> None:
    on = alone()
    assert begin(on, None) is ErrorCode.INVALID_TXN_STATE
    assert begin(on, note(on)) is ErrorCode.NONE
    assert begin(on, None, sequence=1) is ErrorCode.NONE
    assert begin(on, None, epoch=1) is ErrorCode.INVALID_TXN_STATE


def test_txn_v3_what_was_overtaken_by_an_abort_opens_nothing() -> None:
    on = alone()
    late = note(on)
    on.marker()
    assert begin(on, late) is ErrorCode.INVALID_TXN_STATE
    assert on.partition.last_stable_offset == on.partition.high_watermark


def test_txn_v3_a_batch_uses_up_the_answer_with_which_it_was_taken() -> None:
    """A marker of the same epoch leaves the guards of version 2 alone, and may be of a transaction that an old client ended."""
    on = alone()
    guard = note(on, bumps=True)
    assert begin(on, guard) is ErrorCode.NONE
    on.marker()
    assert begin(on, guard, sequence=1) is ErrorCode.INVALID_TXN_STATE


def test_a_plain_batch_and_a_repeated_one_need_no_guard() -> None:
    on = alone()
    on.append(guard=None)
    on.append(guard=None, producer_id=2, producer_epoch=0, base_sequence=0)
    assert begin(on, note(on)) is ErrorCode.NONE
    on.marker()
    end = on.partition.log.log_end_offset
    assert begin(on, None) is ErrorCode.NONE, "a repeated batch is answered"
    assert on.partition.log.log_end_offset == end


def test_txn_p5_with_an_epoch_for_each_transaction_an_unknown_producer_begins_at_0() -> None:
    on = alone()
    assert begin(on, note(on, epoch=3, sequence=7, bumps=True), 3, 7) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert begin(on, note(on, epoch=3, sequence=0, bumps=True), 3, 0) is ErrorCode.NONE


def test_txn_p5_others_may_go_on_where_their_records_were_deleted() -> None:
    on = alone()
    assert begin(on, note(on, epoch=3, sequence=7), 3, 7) is ErrorCode.NONE


@pytest.mark.parametrize("what", ["leader epoch", "cut"])
def test_txn_v9_guards_end_with_the_leader_epoch_and_with_a_cut(what: str) -> None:
    on = alone()
    guard = note(on)
    if what == "cut":
        on.partition.log.truncate_to(0)
    else:
        on.partition.apply(image(replicas=(ME,), isr=(ME,), epoch=6, partition_epoch=2))
    assert begin(on, guard) is ErrorCode.NOT_LEADER_OR_FOLLOWER, "to be tried again, where the leader is"
