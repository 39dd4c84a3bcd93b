"""A partition: how far it may be read, what it takes in which role, and who is told when that changes."""

# mypy: disable-error-code="index"

from __future__ import annotations

from typing import Any

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.log.recovery import load
from strandline.records.batch import BatchBuilder
from strandline.records.control import ControlRecordType, control_key, end_txn_marker
from strandline.replica.isr_state import IsrAnswer
from strandline.replica.partition import READ_COMMITTED, READ_UNCOMMITTED, Partition

from .bench import NONE, NOW_MS, Bench, as_leader_wrote, image

ALONE = image(replicas=(1,), isr=(1,))


class Reader:
    def __init__(self, told: list[Any], name: str) -> None:
        self.told = told
        self.name = name

    def wake(self, partition: Partition, new_bytes: int) -> None:
        self.told.append((self.name, new_bytes))


class Watcher:
    def __init__(self) -> None:
        self.heard: list[bool] = []

    def notify(self, *, urgent: bool) -> None:
        self.heard.append(urgent)


# The high watermark


def test_a1_the_watermark_is_the_least_of_all_that_are_in_sync() -> None:
    on = Bench()
    on.append(5)
    assert on.offsets == (0, 5)
    on.fetched(2, 5)
    assert on.offsets == (0, 5)
    on.fetched(3, 4)
    assert on.offsets == (4, 5)
    on.fetched(3, 2)
    assert on.offsets == (4, 5), "it only rises"


def test_a1_one_that_is_about_to_join_holds_it_back() -> None:
    on = Bench(image(isr=(1, 2)))
    on.append(2)
    on.fetched(3, 2)
    on.partition.isr_answered(on.proposals[-1], ErrorCode.INELIGIBLE_REPLICA)
    on.append(2)
    on.fetched(2, 4)
    assert on.offsets == (2, 4), "3 was level a moment ago"
    del on.epochs[3]
    on.leadership.advance()
    assert on.offsets == (4, 4), "now it may not join"


def test_a1_one_that_is_long_behind_does_not() -> None:
    on = Bench(image(isr=(1, 2)))
    on.fetched(3, 0)
    on.partition.isr_answered(on.proposals[-1], ErrorCode.INELIGIBLE_REPLICA)
    on.loop.run(31)
    on.append(2)
    on.fetched(2, 2)
    assert on.offsets == (2, 2)


def test_a2_the_watermark_stands_still_under_min_isr() -> None:
    on = Bench(image(isr=(1,)), min_isr=2)
    on.append(1)
    on.wait_for(1)
    assert on.offsets == (0, 1)
    on.partition.apply(image(isr=(1, 2), partition_epoch=2))
    on.fetched(2, 1)
    assert on.offsets == (1, 1)
    assert on.told == [(1, NONE)]


def test_a2_no_more_than_there_are_replicas_can_be_asked_for() -> None:
    on = Bench(ALONE, min_isr=3)
    on.append(1, for_all=True)
    assert on.offsets == (1, 1)


def test_a3_with_too_few_in_sync_nothing_is_written() -> None:
    on = Bench(image(isr=(1,)), min_isr=2)
    with pytest.raises(KafkaError) as refused:
        on.append(for_all=True)
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert on.offsets == (0, 0)
    on.append()
    assert on.offsets == (0, 1), "who wants the leader's word only is served"


def test_a3_one_that_is_only_proposed_does_not_count() -> None:
    on = Bench(image(isr=(1,)), min_isr=2)
    on.fetched(2, 0)
    assert on.leadership.isr.maximal == (1, 2)
    with pytest.raises(KafkaError):
        on.append(for_all=True)


def test_a4_too_few_at_the_end_of_the_wait() -> None:
    on = Bench(min_isr=1)
    on.append()
    on.wait_for(1)
    on.partition.log.config = Bench(min_isr=3).partition.log.config
    on.partition.apply(image(isr=(1, 2), partition_epoch=2))
    on.fetched(2, 1)
    assert on.told == [], "the watermark stands still: the writer waits, in the end for its timeout"
    on.partition.log.config = Bench(min_isr=2).partition.log.config
    on.leadership.advance()
    assert on.told == [(1, NONE)]


def test_a5_who_waits_for_a_leader_that_is_none_any_more_is_told() -> None:
    on = Bench()
    on.append()
    on.wait_for(1)
    on.partition.apply(image(2, epoch=6, partition_epoch=2))
    assert on.told == [(1, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    with pytest.raises(KafkaError) as refused:
        on.append()
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(-1, None), (5, None), (4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a6_who_knows_another_epoch_is_told(epoch: int, code: ErrorCode | None) -> None:
    partition = Bench().partition
    if code is None:
        partition.check_leader_epoch(epoch)
        return
    with pytest.raises(KafkaError) as error:
        partition.check_leader_epoch(epoch)
    assert error.value.code is code


def test_a12_a_new_epoch_begins_at_the_log_end_without_a_record() -> None:
    on = Bench()
    on.append(3)
    assert on.partition.log.epochs.entries == [(5, 0)]
    on.partition.apply(image(2, epoch=6, partition_epoch=2))
    on.partition.apply(image(1, epoch=7, partition_epoch=3))
    assert on.partition.log.epochs.entries == [(5, 0), (7, 3)]
    assert on.leadership.start_offset == 3
    assert on.follower(2).log_end_offset == -1, "nothing is known of a follower until it fetches"


def test_a12_what_followers_had_in_an_earlier_reign_counts_for_nothing() -> None:
    """Of images that came together only the last is seen: between two reigns of this node another may have led."""
    on = Bench()
    on.append(3)
    on.fetched(2, 3)
    on.partition.apply(image(1, epoch=7, partition_epoch=3))
    on.fetched(3, 3)
    assert on.offsets == (0, 3)


def test_a12_a_leader_that_goes_on_keeps_what_it_knows() -> None:
    on = Bench()
    on.append(3)
    on.fetched(2, 3)
    on.partition.apply(image(1, epoch=6, partition_epoch=2, replicas=(1, 2), isr=(1, 2)))
    assert on.offsets == (3, 3)


def test_a13_a_leader_behind_its_epochs_start_does_not_tell_the_end() -> None:
    on = Bench(image(2))
    on.take(records=as_leader_wrote((0, 2, 5)), high_watermark=0, log_start_offset=0)
    on.partition.apply(image(1, epoch=6, partition_epoch=2))
    partition = on.partition
    assert partition.is_behind_its_epoch
    on.fetched(2, 2)
    on.fetched(3, 2)
    assert not partition.is_behind_its_epoch


def test_a14_readers_of_committed_records_stop_at_an_open_transaction() -> None:
    on = Bench(ALONE)
    on.append()
    on.append(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    on.append()
    partition = on.partition
    assert (partition.readable_end(READ_UNCOMMITTED), partition.readable_end(READ_COMMITTED)) == (3, 1)
    builder = BatchBuilder()
    builder.append(control_key(ControlRecordType.COMMIT), end_txn_marker(0), timestamp=NOW_MS)
    marker = builder.build(producer_id=1, producer_epoch=0, transactional=True, control=True)
    assert partition.append_own(marker, NOW_MS) == 3
    assert partition.readable_end(READ_COMMITTED) == 4


def test_a16_a_follower_is_named_to_consumers_only_if_it_has_what_they_want() -> None:
    on = Bench(image(isr=(1, 2)))
    on.append(4)
    assert not on.leadership.can_serve(2, 0), "it has not fetched yet"
    on.fetched(2, 3)
    on.fetched(3, 4)
    assert [on.leadership.can_serve(2, offset) for offset in (0, 3, 4)] == [True, True, False]
    assert not on.leadership.can_serve(3, 0), "not in the ISR"
    del on.epochs[2]
    assert not on.leadership.can_serve(2, 0), "not alive"


# Vouching


def test_with_flush_messages_1_nothing_counts_before_its_flush() -> None:
    on = Bench(ALONE, flush_messages=1)
    on.append(2)
    on.append()
    assert on.flushes_due == 2
    assert on.offsets == (0, 3)
    on.wait_for(2)
    on.wait_for(3)
    assert on.told == []
    assert on.flush() is False
    assert on.offsets == (3, 3)
    assert on.told == [(2, NONE), (3, NONE)]


def test_with_flush_messages_3_up_to_two_count_without_a_flush() -> None:
    on = Bench(ALONE, flush_messages=3)
    on.append(2)
    assert on.offsets == (2, 2)
    on.append()
    assert on.offsets == (2, 3)
    on.flush()
    on.append(2)
    assert on.offsets == (5, 5)


def test_a_leader_that_has_not_flushed_holds_its_own_watermark_back() -> None:
    on = Bench(flush_messages=1)
    on.append()
    on.fetched(2, 1)
    on.fetched(3, 1)
    assert on.offsets == (0, 1)
    on.flush()
    assert on.offsets == (1, 1)


def test_a_flush_that_ends_after_leadership_went_commits_nothing() -> None:
    on = Bench(ALONE, flush_messages=1)
    on.append()
    on.wait_for(1)
    on.partition.apply(image(2, epoch=6, partition_epoch=2))
    on.flush()
    assert on.offsets == (0, 1)
    assert on.told == [(1, ErrorCode.NOT_LEADER_OR_FOLLOWER)]


def test_the_leaders_own_word_waits_for_its_flush_alone() -> None:
    on = Bench(flush_messages=1)
    on.append()
    on.partition.when_written(1, lambda code: on.told.append(code))
    assert on.told == []
    on.flush()
    assert on.told == [NONE]
    assert on.offsets == (0, 1)


def test_writers_are_told_in_order_and_only_once() -> None:
    on = Bench(ALONE, flush_messages=1)
    for end_offset in (1, 2, 3):
        on.append()
        on.wait_for(end_offset)
    on.partition.vouch_for(2)
    assert on.told == [(1, NONE), (2, NONE)]
    on.partition.vouch_for(1)
    on.partition.vouch_for(3)
    assert on.told == [(1, NONE), (2, NONE), (3, NONE)]


# Who is told


def test_readers_hear_of_new_bytes_when_they_may_read_them() -> None:
    on = Bench()
    on.partition.readers[Reader(on.told, "reader")] = None
    on.append()
    on.fetched(2, 1)
    assert on.told == []
    on.fetched(3, 1)
    assert on.told == [("reader", on.partition.log.size)]


def test_readers_of_a_follower_hear_of_bytes_that_came_before_the_watermark() -> None:
    on = Bench(image(leader=2))
    on.partition.readers[Reader(on.told, "reader")] = None
    on.take(records=as_leader_wrote((0, 1, 5)), high_watermark=0, log_start_offset=0)
    on.take(records=as_leader_wrote((1, 1, 5)), high_watermark=1, log_start_offset=0)
    on.take(high_watermark=2, log_start_offset=0)
    assert on.offsets == (2, 2)
    assert on.told[-1][1] > 0, "the last record can be read now, and nobody said so"


@pytest.mark.parametrize("leader", [1, 2])
@pytest.mark.parametrize("checkpointed", [0, 1])
def test_readers_hear_of_records_from_before_a_restart_when_the_watermark_reaches_them(
    leader: int, checkpointed: int
) -> None:
    """The log was opened with more than its checkpointed watermark says: those bytes were never appended by this process."""
    before = Bench(image(isr=(1, 2), replicas=(1, 2)))
    before.append()
    before.append(2)
    log = before.partition.log
    log.close_clean()
    log = load(before.disk, "/t-0", log.config, clean=True, recovery_point=3).log
    state = image(leader, epoch=6, partition_epoch=3, isr=(1, 2), replicas=(1, 2))
    on = Bench(state, high_watermark=checkpointed, log=log)
    on.partition.readers[Reader(on.told, "reader")] = None
    on.fetched(2, 3) if leader == 1 else on.take(high_watermark=3, log_start_offset=0)
    assert on.offsets == (3, 3)
    [(_, new_bytes)] = on.told
    assert new_bytes >= log.size * (3 - checkpointed) // 3 > 0
    on.told.clear()
    size = log.size
    on.append() if leader == 1 else on.take(records=as_leader_wrote((3, 1, 6)), high_watermark=4, log_start_offset=0)
    if leader == 1:
        on.fetched(2, 4)
    assert on.told == [("reader", log.size - size)], "what was announced once is not announced again"


def test_followers_sessions_hear_of_records_at_once_and_of_the_watermark_when_it_suits() -> None:
    on = Bench()
    watcher = Watcher()
    on.partition.watchers[watcher] = None
    on.append()
    assert watcher.heard == [True]
    on.fetched(2, 1)
    on.fetched(3, 1)
    assert watcher.heard == [True, False]
    on.partition.apply(image(2, epoch=6, partition_epoch=2))
    assert watcher.heard == [True, False, True]


@pytest.mark.parametrize("how", ["stop", "fail"])
def test_whoever_waits_is_told_that_it_is_over(how: str) -> None:
    on = Bench()
    on.append()
    on.wait_for(1)
    on.partition.readers[Reader(on.told, "reader")] = None
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if how == "stop" else ErrorCode.KAFKA_STORAGE_ERROR
    on.partition.stop(code) if how == "stop" else on.partition.fail()
    assert on.told == [(1, code), ("reader", -1)]
    assert not on.partition.readers


def test_a_failed_log_dir_serves_nobody() -> None:
    on = Bench(ALONE)
    on.append()
    on.partition.fail()
    for attempt in (on.append, on.partition.check_online, lambda: on.partition.delete_records(0)):
        with pytest.raises(KafkaError) as error:
            attempt()
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert on.partition.fetch_position(1) is None
    assert on.partition.log.log_end_offset == 1


# Deleting


@pytest.mark.parametrize(("asked", "start"), [(0, 0), (2, 2), (3, 3), (-1, 3)])
def test_records_are_deleted_up_to_the_high_watermark(asked: int, start: int) -> None:
    on = Bench(ALONE)
    on.append(3)
    assert on.partition.delete_records(asked) == start
    assert on.partition.log.log_start_offset == start


@pytest.mark.parametrize("asked", [-2, 1])
def test_records_beyond_the_high_watermark_are_not(asked: int) -> None:
    on = Bench()
    on.append(3)
    with pytest.raises(KafkaError) as error:
        on.partition.delete_records(asked)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_what_is_deleted_is_gone_when_every_live_replica_says_so() -> None:
    on = Bench()
    on.append(3)
    for replica in (2, 3):
        on.fetched(replica, 3)
    on.partition.delete_records(2)
    on.partition.when_deleted(2, on.told.append)
    on.follower(2).log_start_offset = 2
    on.fetched(3, 3)
    assert on.told == []
    del on.epochs[3]
    on.follower(2).log_start_offset = 2
    on.partition.when_deleted(2, on.told.append)
    assert on.told == [NONE, NONE]


# Roles


def test_b5_an_older_partition_epoch_never_overwrites_a_newer_one() -> None:
    on = Bench(image(isr=(1, 2)))
    on.fetched(3, 0)
    on.partition.isr_answered(on.proposals[-1], IsrAnswer(1, 5, (1, 2, 3), 0, 3))
    assert on.partition.apply(image(isr=(1,), partition_epoch=2)) is False
    assert on.leadership.isr.isr == (1, 2, 3)
    on.partition.apply(image(isr=(1, 2, 3), partition_epoch=3))
    assert on.leadership.isr.isr == (1, 2, 3)


def test_i11_a_leader_fetches_from_nobody() -> None:
    on = Bench()
    assert on.partition.fetch_position(100) is None
    assert on.partition.apply(image(2, epoch=6, partition_epoch=2)) is True
    assert on.partition.fetch_position(100) is not None
    assert on.partition.apply(image(2, epoch=6, partition_epoch=3, isr=(2,))) is False, (
        "the same leader, the same epoch"
    )


def test_the_watermark_that_was_written_down_is_where_a_restart_begins() -> None:
    log = Bench(ALONE)
    log.append(4)
    for checkpoint, expected in ((0, 0), (3, 3), (9, 4)):
        on = Bench(image(2), log=log.partition.log, high_watermark=checkpoint)
        assert on.offsets == (expected, 4)


def test_b13_a_cut_that_failed_half_way_takes_its_partition_offline_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next change of the metadata finds the log shorter than what the partition knew."""
    on = Bench(image(2))
    on.take(records=as_leader_wrote((0, 3, 5)), high_watermark=3, log_start_offset=0)

    def unreadable(*args: object) -> None:
        raise OSError("the disk")

    monkeypatch.setattr("strandline.log.truncation.rebuild_producers", unreadable)
    with pytest.raises(OSError, match="the disk"):
        on.partition.truncate(1, "diverging")
    on.partition.fail()
    on.partition.apply(image(3, epoch=6, partition_epoch=2))
    on.partition.check_invariants()
