"""The metadata log of a quorum of one: what a decision sees, when it is answered, what a crash leaves of it."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace

import pytest

from strandline.config.layers import DEFAULTS
from strandline.config.topic_config import TopicConfig
from strandline.ids import Uuid
from strandline.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    TopicRecord,
)
from strandline.node.metadata_log import (
    BATCH_RECORDS_MAX,
    MetadataLog,
    ends_within_transaction,
    metadata_dir,
    whole_transactions,
)
from strandline.sim.faults import Fault
from strandline.sim.world import World

DIRECTORY = metadata_dir("/data")
SEGMENT = f"{DIRECTORY}/00000000000000000000.log"
CONFIG = replace(TopicConfig.build(DEFAULTS, {}), flush_messages=1)


def topic(name):
    return TopicRecord(name=name, topic_id=Uuid.draw(random.Random(name)))


def adding(*names):
    """A decision that adds topics and answers with those that it saw."""
    return lambda image: ([topic(name) for name in names], sorted(image.topics))


class Opened:
    """A metadata log on a simulated host, with what became of its decisions."""

    def __init__(self, host):
        self.failures = []
        self.applied = []
        self.disk = host.disk
        self.log = MetadataLog(host.disk, DIRECTORY, 1, host.clock, self.failures.append)

    async def open(self, clean=False):
        await self.log.open(CONFIG, clean=clean)
        self.running = asyncio.create_task(self.log.run(self.apply))

    async def apply(self, image):
        await asyncio.sleep(0.1)
        self.applied.append(sorted(image.topics))


def lives(*stories):
    """Each story gets the log as the one before left it; its process is killed at its end."""
    with World(1) as world:
        host = world.node("n1")
        host.disk.mkdir("/data")

        async def life(story):
            opened = Opened(host)
            await opened.open()
            await story(opened)

        async def main():
            for i, story in enumerate(stories):
                if i:
                    host.kill()
                    host.restart()
                await host.spawn(life(story))

        world.run(main())


# Deciding and committing


def test_a_decision_sees_those_before_it_and_is_answered_when_it_is_committed_and_applied():
    async def story(opened):
        log = opened.log
        opened.disk.sync_s = (1.0, 1.0)
        first = asyncio.create_task(log.decide(adding("a")))
        await asyncio.sleep(0.5)
        second = asyncio.create_task(log.decide(adding("b")))
        third = asyncio.create_task(log.decide(lambda image: ([], sorted(image.topics))))
        await asyncio.sleep(0.1)
        assert (sorted(log.tip.topics), sorted(log.committed.topics)) == (["a", "b"], [])
        assert not (first.done())
        assert not (second.done())
        assert not (third.done())
        assert await first == []
        assert opened.applied == [["a"]]
        assert not second.done()
        assert not third.done()
        assert (await second, await third) == (["a"], ["a", "b"])
        assert opened.applied == [["a"], ["a", "b"]]

    lives(story)


def test_whoever_gives_up_takes_nothing_away_from_the_others():
    async def story(opened):
        opened.disk.sync_s = (1.0, 1.0)
        first = asyncio.create_task(opened.log.decide(adding("a")))
        await asyncio.sleep(0.1)
        waiting = asyncio.create_task(opened.log.decide(lambda image: ([], sorted(image.topics))))
        await asyncio.sleep(0.1)
        first.cancel()
        assert await waiting == ["a"]
        assert sorted(opened.log.committed.topics) == ["a"]

    lives(story)


def test_a_decision_that_raises_changes_nothing():
    def refuse(image):
        raise ValueError("no")

    async def story(opened):
        end_offset = opened.log.log.log_end_offset
        with pytest.raises(ValueError, match="no"):
            await opened.log.decide(refuse)
        assert opened.log.log.log_end_offset == end_offset
        assert opened.failures == []

    lives(story)


def test_a_log_that_cannot_be_written_is_reported():
    async def story(opened):
        opened.disk.faults.set(DIRECTORY, Fault.FULL, 1)
        with pytest.raises(OSError):
            await opened.log.decide(adding("a"))
        assert len(opened.failures) == 1
        assert "could not be written" in opened.failures[0]
        assert "a" not in opened.log.tip.topics

    lives(story)


def test_a_log_that_cannot_be_flushed_ends_its_run_and_answers_nobody():
    async def story(opened):
        opened.disk.faults.set(DIRECTORY, Fault.SYNC_ERROR)
        deciding = asyncio.create_task(opened.log.decide(adding("a")))
        with pytest.raises(OSError):
            await opened.running
        assert not deciding.done()
        assert not opened.log.committed.topics

    lives(story)


@pytest.mark.parametrize("after_s", [1.0, 2.05], ids=["flush", "apply"])
def test_a_run_that_is_cancelled_ends_what_it_began(after_s):
    async def story(opened):
        opened.disk.sync_s = (2.0, 2.0)
        deciding = asyncio.create_task(opened.log.decide(adding("a")))
        await asyncio.sleep(after_s)
        opened.running.cancel()
        await asyncio.wait([opened.running])
        assert opened.log.log.recovery_point == opened.log.log.log_end_offset
        assert opened.applied == ([] if after_s < 2 else [["a"]])
        assert deciding.done() is bool(opened.applied)

    lives(story)


# Starting again


def test_a_new_cluster_begins_with_its_features():
    async def story(opened):
        assert opened.log.committed.features == {"metadata.version": 30}
        assert opened.log.log.recovery_point == opened.log.log.log_end_offset == 2

    lives(story)


def test_the_epoch_rises_at_each_start():
    epochs = []

    async def story(opened):
        await opened.log.decide(adding(f"t{len(epochs)}"))
        epochs.append(opened.log.committed.epoch)
        state = json.loads(opened.disk.read_file(f"{DIRECTORY}/quorum-state"))
        assert state["leaderEpoch"] == epochs[-1]

    async def last(opened):
        assert sorted(opened.log.committed.topics) == ["t0", "t1", "t2"]

    lives(story, story, story, last)
    assert epochs == [1, 2, 3]


def test_the_epoch_rises_also_when_nothing_was_written_in_it():
    async def first(opened):
        file = opened.disk.open(SEGMENT)
        file.truncate(0)

    async def second(opened):
        assert opened.log.log.epochs.entries[-1][0] == 2

    lives(first, second)


# Metadata transactions


MANY = [f"t{i}" for i in range(BATCH_RECORDS_MAX + 1)]


def test_a_large_decision_is_one_transaction():
    async def first(opened):
        await opened.log.decide(adding("before"))
        end_offset = opened.log.log.log_end_offset
        await opened.log.decide(adding(*MANY))
        assert opened.log.log.log_end_offset == end_offset + len(MANY) + 2
        assert opened.applied[-1] == sorted(["before", *MANY])

    async def second(opened):
        assert len(opened.log.committed.topics) == len(MANY) + 1

    lives(first, second)


def test_of_a_large_decision_that_is_torn_nothing_is_left():
    async def first(opened):
        await opened.log.decide(adding("before"))
        await opened.log.decide(adding(*MANY))
        file = opened.disk.open(SEGMENT)
        file.truncate(file.size - 1)

    async def second(opened):
        assert opened.log.truncated_bytes > 0
        assert sorted(opened.log.committed.topics) == ["before"]
        await opened.log.decide(adding("after"))

    async def third(opened):
        assert sorted(opened.log.committed.topics) == ["after", "before"]

    lives(first, second, third)


def test_a_decision_that_fits_in_a_batch_needs_no_transaction():
    async def story(opened):
        end_offset = opened.log.log.log_end_offset
        await opened.log.decide(adding(*MANY[:BATCH_RECORDS_MAX]))
        assert opened.log.log.log_end_offset == end_offset + BATCH_RECORDS_MAX

    lives(story)


A, B, C = topic("a"), topic("b"), topic("c")
BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()


@pytest.mark.parametrize(
    ("records", "kept", "cut_off"),
    [
        ([], [], False),
        ([A, B], [A, B], False),
        ([A, BEGIN, B, END, C], [A, B, C], False),
        ([A, BEGIN, B, ABORT, C], [A, C], False),
        ([A, BEGIN, B, C], [A], True),
        ([BEGIN, A, END, BEGIN, B], [A], True),
        ([BEGIN, A, ABORT, BEGIN, B, END], [B], False),
    ],
)
def test_only_whole_transactions_count(records, kept, cut_off):
    assert whole_transactions(records) == kept
    assert ends_within_transaction(records) is cut_off
