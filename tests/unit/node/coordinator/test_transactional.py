"""What a coordinator writes in a producer's transaction: its batches, what they are checked for, and the marker at the end."""

# mypy: disable-error-code="union-attr"

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.records import OffsetCommitKey, OffsetCommitValue
from strandline.log.verification_guards import NOT_REQUIRED, VerificationGuard
from strandline.records.header import BatchHeader, iterate

from .stage import TOPIC, Coordination, fetched, in_simulation

TURN = 0.001
A, B = (7, 0), (8, 0)
LATER = (7, 1)


def offset_records(offset: int, group: str) -> list[CoordinatorRecord]:
    value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=1)
    return [CoordinatorRecord(OffsetCommitKey(group=group, topic="t", partition=0), value)]


class Transactions:
    """Producers that commit offsets, and their coordinator, which sends markers."""

    def __init__(self, stage: Coordination) -> None:
        self.stage = stage
        self.codes: list[str] = []
        """Of operations and markers, in the order in which they were answered."""

    def commit(
        self,
        producer: tuple[int, int] | None,
        offset: int = 1,
        group: str = "g",
        guard: VerificationGuard | None = NOT_REQUIRED,
    ) -> None:
        def done(code: ErrorCode, at: Moment) -> None:
            self.codes.append(code.name)

        result = CoordinatorResult(offset_records(offset, group), done, producer=producer, guard=guard)
        self.stage.runner.write(lambda shard, at: result, lambda error: self.codes.append(error.code.name))

    def end(
        self,
        producer: tuple[int, int],
        commit: bool = True,
        coordinator_epoch: int = 5,
        version: int = 0,
        partition: int = 0,
    ) -> None:
        def done(code: ErrorCode) -> None:
            self.codes.append(f"marker {code.name}")

        self.stage.broker.groups.write_marker(partition, producer, commit, coordinator_epoch, version, done)

    def ask(self, producer: tuple[int, int], bumps_epoch: bool = False) -> VerificationGuard | None:
        noted = self.stage.broker.groups.note_question("g", producer, bumps_epoch=bumps_epoch)
        assert noted.partition == (TOPIC, 0)
        guard: VerificationGuard | None = noted.guard
        return guard

    def take(self) -> list[str]:
        codes, self.codes = self.codes, []
        return codes

    async def turn(self) -> list[str]:
        await asyncio.sleep(TURN)
        return self.take()

    @property
    def headers(self) -> list[BatchHeader]:
        segment = self.stage.partition.log.segments.active
        return [header for _, header in iterate(segment.file.read_blocking(0, segment.size))]

    @property
    def log(self) -> list[tuple[int, int]]:
        """The producer of each batch, and how many records it has; a marker has none."""
        return [(header.producer_id, 0 if header.is_control else header.records_count) for header in self.headers]


async def begin(broker: Any, disk: Any, *replicas: int, **configs: str) -> Transactions:
    return Transactions(await Coordination(broker, disk, *replicas, **configs).loaded())


# Batches


def test_txn_t42_each_transaction_has_batches_of_its_own_in_the_order_of_operations() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk)
        for producer in (None, A, A, None, B, LATER):
            txns.commit(producer)
        assert await txns.turn() == ["NONE"] * 6
        assert txns.log == [(-1, 1), (7, 2), (-1, 1), (8, 1), (7, 1)]
        headers = [header for header in txns.headers if header.producer_id >= 0]
        assert [header.is_transactional for header in headers] == [True] * 3
        assert [header.base_sequence for header in headers] == [0] * 3
        assert [header.producer_epoch for header in headers] == [0, 0, 1]

    in_simulation(story)


def test_offsets_in_a_transaction_count_when_it_is_committed() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk)
        txns.commit(None, 1)
        txns.commit(A, 5)
        txns.commit(B, 9, "h")
        assert fetched(await txns.stage.fetch()) == (0, 1)
        txns.end(A)
        txns.end(B, commit=False)
        assert fetched(await txns.stage.fetch()) == (0, 5)
        broker.change(TOPIC, leader=1)
        await txns.stage.loaded()
        assert fetched(await txns.stage.fetch()) == (0, 5)
        assert fetched(await txns.stage.fetch("h")) == (0, -1)

    in_simulation(story)


def test_too_few_in_sync_and_nothing_is_pending() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk, 1, 2, 3, min_insync_replicas="2")
        broker.change(TOPIC, isr=(1,))
        txns.commit(A)
        assert await txns.turn() == ["NOT_ENOUGH_REPLICAS"]
        assert not txns.stage.runner.shard.groups

    in_simulation(story)


# What they are checked for


def test_txn_v6_a_transaction_begins_only_with_the_guard_that_was_noted() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk)
        txns.commit(A, guard=None)
        assert txns.take() == ["INVALID_TXN_STATE"]
        guard = txns.ask(A)
        txns.end(A, commit=False)
        txns.take()
        txns.commit(A, guard=guard)
        assert txns.take() == ["INVALID_TXN_STATE"], "the transaction ended while its coordinator was asked"
        assert not txns.stage.runner.shard.groups
        guard = txns.ask(A)
        assert guard is not None
        txns.commit(A, guard=guard)
        txns.commit(A, guard=guard)
        assert await txns.turn() == ["NONE"] * 2
        assert len(txns.stage.partition.log.guards) == 0
        assert txns.ask(A) is None, "it has begun: there is nothing to ask"
        txns.commit(A, guard=None)
        assert await txns.turn() == ["NONE"]

    in_simulation(story)


def test_sec_l10_one_transaction_more_than_may_be_remembered_is_refused() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk)
        txns.stage.partition.log.producers.ids_max = 1
        txns.commit(A)
        assert await txns.turn() == ["NONE"]
        txns.commit(B)
        assert txns.take() == ["POLICY_VIOLATION"]
        txns.commit(A)
        assert await txns.turn() == ["NONE"]

    in_simulation(story)


def test_a_guard_is_worth_one_transaction() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk)
        guard = txns.ask(A)
        txns.commit(A, guard=guard)
        await asyncio.sleep(TURN)
        txns.end(A)
        await txns.turn()
        txns.commit(A, guard=guard)
        assert await txns.turn() == ["INVALID_TXN_STATE"]

    in_simulation(story)


def test_an_old_epoch_writes_nothing() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk)
        txns.commit(LATER)
        txns.commit(A)
        assert txns.take() == ["INVALID_PRODUCER_EPOCH"], "beside a newer one of the same turn"
        assert await txns.turn() == ["NONE"]
        txns.commit(A)
        assert txns.take() == ["INVALID_PRODUCER_EPOCH"]
        with pytest.raises(KafkaError) as refused:
            txns.ask(A)
        assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
        assert txns.log == [(7, 1)]

    in_simulation(story)


def test_questions_are_noted_where_the_group_is_coordinated() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk)
        broker.change(TOPIC, leader=1)
        for code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
            with pytest.raises(KafkaError) as refused:
                txns.ask(A)
            assert refused.value.code is code
            broker.change(TOPIC, leader=2)

    in_simulation(story)


# Markers


def test_txn_t35_a_marker_is_answered_when_it_is_committed_and_its_offsets_are_there() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk, 1, 2, 3)
        txns.commit(A, 5)
        txns.end(A)
        assert txns.log == [(7, 1), (7, 0)], "behind what the turn has brought"
        fetch = txns.stage.fetch()
        assert await txns.turn() == []
        assert not fetch.done()
        txns.stage.replicate(2)
        assert await txns.turn() == []
        txns.stage.replicate(3)
        assert await txns.turn() == ["NONE", "marker NONE"]
        assert fetched(await fetch) == (0, 5)

    in_simulation(story)


def test_a_read_waits_for_the_marker_that_it_has_seen() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk, 1, 2, 3)
        txns.commit(A, 5)
        await asyncio.sleep(TURN)
        txns.stage.replicate()
        txns.end(A)
        fetch = txns.stage.fetch()
        await asyncio.sleep(TURN)
        assert not fetch.done(), "a failover may take the marker back"
        txns.stage.replicate()
        assert fetched(await fetch) == (0, 5)

    in_simulation(story)


def test_a_marker_that_is_sent_during_an_append_comes_behind_the_rest_of_the_turn() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk)

        def done(code: ErrorCode, at: Moment) -> None:
            txns.end(A)

        first = CoordinatorResult(offset_records(1, "first"), done)
        txns.stage.runner.write(lambda shard, at: first, lambda error: None)
        txns.commit(A, 5)
        assert await txns.turn() == ["NONE", "marker NONE"]
        assert txns.log == [(-1, 1), (7, 1), (7, 0)]
        assert fetched(await txns.stage.fetch()) == (0, 5)

    in_simulation(story)


def test_markers_are_refused_as_partitions_refuse_them() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk, 1, 2, 3, min_insync_replicas="2")
        txns.end(LATER)
        txns.end(A)
        txns.end(LATER, coordinator_epoch=4)
        assert await txns.turn() == ["marker INVALID_PRODUCER_EPOCH", "marker TRANSACTION_COORDINATOR_FENCED"]
        broker.change(TOPIC, isr=(1,))
        txns.end(LATER)
        assert await txns.turn() == ["marker NOT_ENOUGH_REPLICAS"], "TXN-P24"
        assert txns.log == [(7, 0)]

    in_simulation(story)


def test_txn_t35_markers_are_for_the_coordinator_of_the_groups() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk)
        broker.change(TOPIC, leader=1)
        txns.end(A)
        assert txns.take() == ["marker COORDINATOR_LOAD_IN_PROGRESS"]
        txns.end(A, partition=1)
        broker.change(TOPIC, leader=2)
        txns.end(A)
        assert txns.take() == ["marker NOT_COORDINATOR"] * 2
        assert txns.log == []

    in_simulation(story)


def test_a_marker_that_takes_too_long_is_sent_again() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk, 1, 2, 3)
        txns.commit(A, 5)
        await asyncio.sleep(TURN)
        txns.stage.replicate()
        txns.take()
        txns.end(A)
        await asyncio.sleep(5.1)
        assert txns.take() == ["marker REQUEST_TIMED_OUT"]
        txns.end(A)
        txns.stage.replicate()
        assert await txns.turn() == ["marker NONE"]
        assert fetched(await txns.stage.fetch()) == (0, 5)

    in_simulation(story)


def test_a_marker_that_was_not_committed_before_the_leadership_is_lost() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk, 1, 2, 3)
        txns.end(A)
        broker.change(TOPIC, leader=2)
        assert await txns.turn() == ["marker NOT_COORDINATOR"]

    in_simulation(story)


@pytest.mark.parametrize(("number", "stays"), [(errno.EMFILE, True), (errno.EIO, False)])
def test_a_marker_that_cannot_be_written(number: int, stays: bool) -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk)
        failed = []
        broker.parts.hosted.storage_failed = lambda partition, error: failed.append(error)
        txns.commit(A, 5)
        await txns.turn()
        partition = txns.stage.partition
        append = partition.append_marker

        def fail(*args: Any, **fields: Any) -> int:
            raise OSError(number, "no")

        partition.append_marker = fail  # type: ignore[method-assign]
        txns.end(A)
        assert await txns.turn() == ["marker KAFKA_STORAGE_ERROR"]
        assert (not failed) is stays
        assert (txns.stage.runner.shard is not None) is stays
        partition.append_marker = append  # type: ignore[method-assign]
        if stays:
            assert fetched(await txns.stage.fetch()) == (0, -1)
            txns.end(A)
            assert await txns.turn() == ["marker NONE"]
            assert fetched(await txns.stage.fetch()) == (0, 5)

    in_simulation(story)


def test_what_the_turn_has_brought_cannot_be_written_and_neither_can_the_marker() -> None:
    async def story(broker: Any, disk: Any) -> None:
        txns = await begin(broker, disk, 1, 2, 3, min_insync_replicas="2")
        before = txns.stage.runner
        txns.commit(A, 5)
        broker.change(TOPIC, isr=(1,))
        txns.end(A)
        assert txns.take() == ["NOT_COORDINATOR", "marker NOT_COORDINATOR"]
        assert txns.log == []
        assert txns.stage.runner is not before, "what was replayed is not in the log: it is loaded again"

    in_simulation(story)
