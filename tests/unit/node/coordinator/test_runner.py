"""One led partition: what is written, when it counts, and who hears of it."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type, union-attr"

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.errors import ErrorCode
from strandline.groups import framing
from strandline.groups.records import OffsetCommitKey, OffsetCommitValue
from strandline.node.coordinator.runner import TIMERS_PER_TURN_MAX
from strandline.records.batch import BatchBuilder
from strandline.records.control import ControlRecordType, control_key, end_txn_marker
from strandline.records.header import read_header
from strandline.sim.faults import Fault

from .stage import TOPIC, Coordination, committed, fetched, in_simulation

TURN = 0.001


def offset_record(offset: int, group: str = "g") -> tuple[bytes, bytes | None]:
    key = OffsetCommitKey(group=group, topic="t", partition=0)
    value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=1)
    return framing.encode(CoordinatorRecord(key, value))


# Writing


def test_what_one_turn_brings_is_one_batch():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()
        commits = [stage.commit(offset, f"g{offset}") for offset in range(20)]
        assert [committed(await commit) for commit in commits] == [0] * 20
        assert stage.batches == [20]
        assert committed(await stage.commit(99)) == 0
        assert stage.batches == [20, 1]
        assert broker.groups.stats.offset_commits == 21

    in_simulation(story)


def test_a_turn_that_brings_more_than_a_batch_may_hold_is_several():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, max_message_bytes="1000").loaded()
        commits = [stage.commit(offset, f"g{offset}", metadata="x" * 200) for offset in range(10)]
        assert [committed(await commit) for commit in commits] == [0] * 10
        assert sum(stage.batches) == 10
        assert 1 < len(stage.batches) < 10

    in_simulation(story)


def test_what_no_batch_can_hold_is_refused_and_changes_nothing():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, max_message_bytes="300").loaded()
        assert committed(await stage.commit(7, metadata="x" * 200)) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert fetched(await stage.fetch()) == (0, -1)
        assert committed(await stage.commit(8)) == 0

    in_simulation(story)


def test_a_batch_is_compressed_as_configured_and_may_then_hold_more():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, max_message_bytes="300").loaded()
        assert committed(await stage.commit(7, metadata="x" * 2000)) == 0
        segment = stage.partition.log.segments.active
        assert read_header(segment.file.read_blocking(0, segment.size)).codec == 4

    in_simulation(story, offsets_topic_compression_codec="4")


def test_a_commit_counts_once_every_in_sync_replica_has_it():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, 1, 2, 3).loaded()
        commit = stage.commit(5)
        await asyncio.sleep(TURN)
        stage.replicate(2)
        await asyncio.sleep(TURN)
        assert not commit.done()
        stage.replicate(3)
        await asyncio.sleep(TURN)
        assert committed(commit.result()) == 0

    in_simulation(story)


def test_with_too_few_in_sync_nothing_is_written_and_nothing_remembered():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, 1, 2, 3, min_insync_replicas="2").loaded()
        broker.change(TOPIC, isr=(1,))
        assert committed(await stage.commit(5)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert stage.partition.log.log_end_offset == 0
        assert fetched(await stage.fetch()) == (0, -1)
        join = await stage.join()
        assert join.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert not stage.runner.shard.groups
        broker.change(TOPIC, isr=(1, 2))
        commit = stage.commit(6)
        await asyncio.sleep(TURN)
        stage.replicate(2)
        assert committed(await commit) == 0

    in_simulation(story)


def test_too_few_in_sync_at_the_end_of_the_turn_the_log_has_the_last_word():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, 1, 2, 3, min_insync_replicas="2").loaded()
        before = stage.runner
        commit = stage.commit(5)
        asyncio.get_running_loop().call_soon(broker.change, TOPIC)
        asyncio.get_running_loop().call_soon(lambda: broker.change(TOPIC, isr=(1,)))
        assert committed(await commit) == ErrorCode.NOT_COORDINATOR
        assert stage.runner is not before
        assert stage.partition.log.log_end_offset == 0
        await stage.loaded()
        assert fetched(await stage.fetch()) == (0, -1)

    in_simulation(story)


def test_a_commit_that_takes_too_long_is_told_and_may_still_count():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, 1, 2, 3).loaded()
        commit = stage.commit(5)
        await asyncio.sleep(4.9)
        assert not commit.done()
        await asyncio.sleep(0.2)
        assert committed(commit.result()) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert broker.groups.stats.timeouts == 1
        stage.replicate()
        assert fetched(await stage.fetch()) == (0, 5)

    in_simulation(story)


def notes_of(stage: Coordination) -> list[str]:
    """An operation that is to be committed is under way; what is called, when it is."""
    notes: list[str] = []

    def done(code: ErrorCode, at: Moment) -> None:
        notes.append(code.name)

    result = CoordinatorResult(records(), done, committed=lambda at: notes.append("committed"))
    stage.runner.write(lambda shard, at: result, lambda error: None)
    return notes


def test_what_is_committed_is_known_just_before_the_answer():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, 1, 2, 3).loaded()
        notes = notes_of(stage)
        await asyncio.sleep(TURN)
        stage.replicate(2)
        await asyncio.sleep(TURN)
        assert notes == []
        stage.replicate(3)
        await asyncio.sleep(TURN)
        assert notes == ["committed", "NONE"]

    in_simulation(story)


def test_what_is_committed_after_its_answer_took_too_long_is_known_too():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, 1, 2, 3).loaded()
        notes = notes_of(stage)
        await asyncio.sleep(5.1)
        assert notes == ["REQUEST_TIMED_OUT"]
        stage.replicate()
        await asyncio.sleep(TURN)
        assert notes == ["REQUEST_TIMED_OUT", "committed"]
        assert not stage.runner._waiting

    in_simulation(story)


def test_what_is_not_committed_before_the_leadership_is_lost_is_never_known_to_be():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, 1, 2, 3).loaded()
        notes = notes_of(stage)
        await asyncio.sleep(TURN)
        broker.change(TOPIC, leader=2)
        await asyncio.sleep(6)
        assert notes == ["NOT_COORDINATOR"]

    in_simulation(story)


def test_with_nothing_to_write_all_is_committed_when_what_came_before_is():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, 1, 2, 3).loaded()
        notes: list[str] = []
        nothing = CoordinatorResult([], committed=lambda at: notes.append("committed"))
        stage.runner.write(lambda shard, at: nothing, lambda error: None)
        assert notes == ["committed"]
        stage.commit(5)
        await asyncio.sleep(TURN)
        stage.runner.write(lambda shard, at: nothing, lambda error: None)
        await asyncio.sleep(TURN)
        assert notes == ["committed"]
        stage.replicate()
        await asyncio.sleep(TURN)
        assert notes == ["committed"] * 2

    in_simulation(story)


# Reading


def test_a_read_waits_for_what_it_has_seen():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, 1, 2, 3).loaded()
        assert fetched(await stage.fetch()) == (0, -1)
        commit, same_turn = stage.commit(5), stage.fetch()
        await asyncio.sleep(TURN)
        later = stage.fetch()
        await asyncio.sleep(TURN)
        assert [task.done() for task in (commit, same_turn, later)] == [False] * 3
        stage.replicate()
        assert (fetched(await same_turn), fetched(await later)) == ((0, 5), (0, 5))

    in_simulation(story)


def test_a_read_that_waits_too_long_has_its_consumer_look_for_the_coordinator():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, 1, 2, 3).loaded()
        stage.commit(5)
        await asyncio.sleep(5.1)
        began = asyncio.get_running_loop().time()
        assert fetched(await stage.fetch()) == (ErrorCode.NOT_COORDINATOR, -2)
        assert asyncio.get_running_loop().time() - began == pytest.approx(5, abs=0.1)

    in_simulation(story)


# Loading


def test_a_new_leader_epoch_begins_with_what_is_in_the_log():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()
        for offset in range(500):
            stage.commit(offset, f"g{offset % 300}")
        await asyncio.sleep(TURN)
        before = stage.runner
        broker.change(TOPIC, leader=1)
        assert stage.runner is not before
        commit, fetch, heartbeat = stage.commit(9), stage.fetch(), stage.heartbeat()
        assert committed(await commit) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert fetched(await fetch) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -2)
        assert (await heartbeat).error_code == ErrorCode.NONE
        await stage.loaded()
        assert fetched(await stage.fetch("g250")) == (0, 250)
        assert fetched(await stage.fetch("g7")) == (0, 307)
        assert broker.groups.stats.loaded_records == 500

    in_simulation(story)


def test_txn_tf4_a_load_whose_leader_epoch_is_over_is_dropped():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()
        for offset in range(50):
            await stage.commit(offset, f"g{offset}")
        loads = broker.groups.stats.loads
        disk.cold_probability = 1.0
        overtaken = []
        for _ in range(3):
            broker.change(TOPIC, leader=1)
            overtaken.append(stage.runner)
            await asyncio.sleep(0.0001)  # it has begun
            assert stage.runner.shard is None
        broker.change(TOPIC, leader=2)
        assert not broker.groups.runners, "this node is no coordinator meanwhile"
        assert committed(await stage.commit(9)) == ErrorCode.NOT_COORDINATOR
        broker.change(TOPIC, leader=1)
        disk.cold_probability = 0
        await asyncio.sleep(60)
        assert [runner.shard for runner in overtaken] == [None] * 3
        assert broker.groups.stats.loads == loads + 1, "the newest alone was finished"
        assert len(stage.runner.shard.groups) == 50

    in_simulation(story)


def test_what_a_load_brought_is_read_only_once_it_is_committed():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, 1, 2, 3).loaded()
        stage.commit(5)
        await asyncio.sleep(TURN)
        broker.change(TOPIC, leader=1)
        await stage.loaded()
        fetch = stage.fetch()
        await asyncio.sleep(TURN)
        assert not fetch.done()
        stage.replicate()
        assert fetched(await fetch) == (0, 5)

    in_simulation(story)


def test_offsets_of_a_transaction_wait_for_its_marker():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()
        for producer_id, offset in ((1, 10), (2, 20), (3, 30)):
            builder = BatchBuilder()
            builder.append(*offset_record(offset, f"g{producer_id}"), timestamp=1)
            fields = {"producer_id": producer_id, "producer_epoch": 0}
            stage.partition.append_own(builder.build(**fields, base_sequence=0, transactional=True), 1)
        for producer_id, kind in ((1, ControlRecordType.COMMIT), (2, ControlRecordType.ABORT)):
            builder = BatchBuilder()
            builder.append(control_key(kind), end_txn_marker(0), timestamp=1)
            marker = builder.build(producer_id=producer_id, producer_epoch=0, transactional=True, control=True)
            stage.partition.append_own(marker, 1)
        broker.change(TOPIC, leader=1)
        await stage.loaded()
        assert [fetched(await stage.fetch(f"g{i}"))[1] for i in (1, 2, 3)] == [10, -1, -1]

    in_simulation(story)


def test_a_log_that_is_not_cached_is_read_beside_the_loop():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()
        for offset in range(50):
            await stage.commit(offset, f"g{offset}")
        disk.cold_probability = 0.5
        broker.change(TOPIC, leader=1)
        for _ in range(1000):
            await asyncio.sleep(0.01)
            if stage.runner.shard is not None:
                break
        assert len(stage.runner.shard.groups) == 50

    in_simulation(story)


def test_a_load_that_fails_is_told_and_tried_again():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()
        builder = BatchBuilder()
        builder.append(b"\0\1", b"\0", timestamp=1)  # an OffsetCommit without a group
        stage.partition.append_own(builder.build(), 1)
        broker.change(TOPIC, leader=1)
        await asyncio.sleep(3.5)
        assert stage.runner.shard is None
        assert broker.groups.stats.failed_loads == 3
        assert sum("could not load groups" in line for line in broker.lines) == 3
        assert committed(await stage.commit(9)) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        stage.partition.delete_records(1)
        await asyncio.sleep(10)
        assert committed(await stage.commit(9)) == 0

    in_simulation(story)


# Losing it


def test_whoever_waits_hears_that_the_leadership_is_lost():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, 1, 2, 3).loaded()
        commit, fetch, join = stage.commit(5), stage.fetch(), stage.join("h")
        await asyncio.sleep(TURN)
        stage.replicate()
        commit = stage.commit(6)
        await asyncio.sleep(TURN)
        gathered = stage.commit(7)
        await asyncio.sleep(0)
        broker.change(TOPIC, leader=2)
        assert committed(await commit) == committed(await gathered) == ErrorCode.NOT_COORDINATOR
        assert (await join).error_code == ErrorCode.NOT_COORDINATOR
        assert fetched(await fetch) == (0, 5)
        assert committed(await stage.commit(8)) == ErrorCode.NOT_COORDINATOR
        assert fetched(await stage.fetch()) == (ErrorCode.NOT_COORDINATOR, -2)
        assert not broker.groups._runners

    in_simulation(story)


def test_a_log_dir_that_fails_under_an_append_takes_the_coordinator_with_it():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()

        def failed(partition: Any, error: OSError) -> None:
            partition.fail()
            broker.groups.role(partition)

        broker.parts.hosted.storage_failed = failed
        disk.faults.set("/data", Fault.FULL)
        assert committed(await stage.commit(5)) == ErrorCode.NOT_COORDINATOR
        assert not broker.groups._runners

    in_simulation(story)


def test_without_a_descriptor_groups_are_loaded_again_and_no_log_dir_has_failed():
    """SEC-L5: the segment is full, and the next one can't be opened for a while."""

    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, internal_segment_bytes="200").loaded()
        broker.parts.hosted.storage_failed = lambda partition, error: pytest.fail(f"{partition} has failed: {error}")
        assert committed(await stage.commit(5)) == 0
        disk.faults.set("/data", Fault.NO_HANDLES)
        assert committed(await stage.commit(6, metadata="x" * 200)) == ErrorCode.NOT_COORDINATOR
        disk.faults.clear()
        await asyncio.sleep(5)
        assert fetched(await stage.fetch()) == (0, 5), "what was not written is not there"
        assert committed(await stage.commit(7, metadata="x" * 200)) == 0
        assert fetched(await stage.fetch()) == (0, 7)

    in_simulation(story)


def test_a_load_without_a_descriptor_is_tried_again():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()
        assert committed(await stage.commit(5)) == 0
        broker.parts.hosted.storage_failed = lambda partition, error: pytest.fail(f"{partition} has failed: {error}")
        broker.change(TOPIC, leader=2)
        file = stage.partition.log.segments.active.file
        tries = []

        class Closed:
            """A file whose descriptor was taken for another, while there is none to open it again."""

            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

            def read(self, position: int, size: int) -> bytes | None:
                tries.append(position)
                if len(tries) < 3:
                    raise OSError(errno.EMFILE, "Too many open files")
                return file.read(position, size)

        stage.partition.log.segments.active.file = Closed()
        broker.change(TOPIC, leader=1)
        await asyncio.sleep(10)
        assert len(tries) >= 3
        assert broker.groups.stats.failed_loads == 2
        assert fetched(await stage.fetch()) == (0, 5)

    in_simulation(story)


def test_a_topic_that_is_deleted_has_no_coordinator():
    async def story(broker: Any, disk: Any) -> None:
        from strandline.metadata import records as r

        stage = await Coordination(broker, disk, 1, 2, 3).loaded()
        commit = stage.commit(5)
        await asyncio.sleep(TURN)
        broker.commit([r.RemoveTopicRecord(topic_id=broker.image.topics[TOPIC].topic_id)])
        assert committed(await commit) == ErrorCode.NOT_COORDINATOR
        assert committed(await stage.commit(5)) == ErrorCode.NOT_COORDINATOR

    in_simulation(story)


# Timers and news


def test_timers_of_a_shard_ring():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()
        joined = await stage.join(session_timeout_ms=6000, rebalance_timeout_ms=60_000)
        assert (joined.error_code, joined.generation_id) == (0, 1)
        [group] = stage.runner.shard.groups.values()
        await asyncio.sleep(5.5)
        assert not group.is_empty()
        await stage.heartbeat(member_id=joined.member_id)
        await asyncio.sleep(5.5)
        assert not group.is_empty()
        await asyncio.sleep(1)
        assert group.is_empty()

    in_simulation(story, group_initial_rebalance_delay_ms="100")


def test_offsets_expire():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()
        await stage.commit(5)
        await asyncio.sleep(70)
        assert broker.groups.stats.offset_expirations == 1
        assert fetched(await stage.fetch()) == (0, -1)
        assert not stage.runner.shard.groups

    in_simulation(story, offsets_retention_minutes="1", offsets_retention_check_interval_ms="5000")


def test_offsets_of_a_deleted_topic_go():
    async def story(broker: Any, disk: Any) -> None:
        from strandline.metadata import records as r

        stage = await Coordination(broker, disk).loaded()
        await stage.commit(5)
        broker.commit([r.RemoveTopicRecord(topic_id=broker.image.topics["t"].topic_id)])
        await asyncio.sleep(TURN)
        assert stage.runner.shard.offsets.count == 0
        assert stage.batches == [1, 1]

    in_simulation(story)


def test_a_timer_that_is_always_due_again_leaves_others_their_turn():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()
        shard = stage.runner.shard
        assert shard is not None
        rings = 0

        def ring(at: Moment) -> None:
            nonlocal rings
            rings += 1
            if rings < 5 * TIMERS_PER_TURN_MAX:
                shard.timers.schedule(("again",), at.now, ring)

        shard.timers.schedule(("again",), 0.0, ring)
        stage.runner._arm()
        assert committed(await stage.commit(5)) == 0
        assert rings < 5 * TIMERS_PER_TURN_MAX
        await asyncio.sleep(1)
        assert rings == 5 * TIMERS_PER_TURN_MAX

    in_simulation(story)


def test_who_fails_does_not_keep_others_of_its_batch_from_being_answered():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()

        def fail(code: ErrorCode, at: Moment) -> None:
            raise LookupError("nobody expects this")

        stage.runner.write(lambda shard, at: CoordinatorResult(records(), fail), lambda error: None)
        assert committed(await stage.commit(5)) == 0

    in_simulation(story)


def test_a_name_that_is_too_long_to_be_written_down_is_refused():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()
        codes = []
        result = CoordinatorResult(records("g" * 40_000), lambda code, at: codes.append(code))
        stage.runner.write(lambda shard, at: result, lambda error: None)
        assert codes == [ErrorCode.RECORD_LIST_TOO_LARGE]
        assert not stage.runner.shard.groups

    in_simulation(story)


def records(group: str = "h") -> list[CoordinatorRecord]:
    value = OffsetCommitValue(offset=1, metadata="", commit_timestamp=1)
    return [CoordinatorRecord(OffsetCommitKey(group=group, topic="t", partition=0), value)]
