"""What a member finds when it starts again: snapshots, the log, its vote, and transactions that never ended."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio
import json

import pytest

from strandline.errors import KafkaError
from strandline.metadata import framing, snapshot
from strandline.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from strandline.node.log_dirs import StorageError
from strandline.node.quorum import quorum
from strandline.node.quorum.quorum import BATCH_RECORDS_MAX
from strandline.raft.control_records import voters_record
from strandline.raft.messages import Address, ReplicaKey
from strandline.raft.voters import VoterNode, VoterSet
from strandline.records.batch import BatchBuilder
from strandline.records.header import assign
from strandline.sim.faults import Fault
from strandline.wire.messages import decode_data

from .stage import DIRECTORY, Member, adding, directory_id, play, topic

OFTEN = {
    "metadata.log.max.record.bytes.between.snapshots": "1000",
    "metadata.max.retention.bytes": "2000",
}
"""Snapshots after a few decisions, and a log that begins behind the oldest soon."""


async def again(member, *, power_loss=False):
    member.host.power_loss() if power_loss else member.host.kill()
    member.host.restart()
    await member.start()


async def decide_many(stage, count, prefix="t"):
    for i in range(count):
        await stage.decide(f"{prefix}{i:03d}")


def names(count, prefix="t"):
    return [f"{prefix}{i:03d}" for i in range(count)]


# Snapshots


@pytest.mark.parametrize("power_loss", [False, True])
def test_a_member_starts_from_its_snapshot_and_the_log_behind_it(power_loss):
    async def story(stage):
        [member] = stage.members
        await decide_many(stage, 100)
        await stage.until(lambda: member.quorum.log.log_start_offset > 0)
        await again(member, power_loss=power_loss)
        await stage.agreed(names(100))
        # What the snapshot holds is there before anybody leads.
        assert 0 < len(member.applied[0].topics) < 100
        await stage.decide("after")

    play(story, count=1, settings=OFTEN)


def test_snapshots_that_are_too_many_go_and_the_log_before_them():
    async def story(stage):
        [member] = stage.members
        await decide_many(stage, 200)
        await asyncio.sleep(1)
        kept = member.files(".checkpoint")
        assert 1 <= len(kept) <= 4
        assert int(kept[0][:20]) == member.quorum.log.log_start_offset
        assert not member.files(".part")

    play(story, count=1, settings=OFTEN)


def test_a_snapshot_is_taken_in_time_if_there_is_anything_new():
    async def story(stage):
        [member] = stage.members
        await stage.decide("a")
        end_offset, epoch = member.quorum.committed.end_offset, member.quorum.committed.epoch
        await asyncio.sleep(25)
        assert member.files(".checkpoint") == [f"{end_offset:020d}-{epoch:010d}.checkpoint"]

    play(story, count=1, settings={"metadata.log.max.snapshot.interval.ms": "10000"})


@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_a_snapshot_that_is_not_whole_is_passed_over(damage):
    async def story(stage):
        [member] = stage.members
        await decide_many(stage, 60)
        await asyncio.sleep(1)
        newest = f"{DIRECTORY}/{member.files('.checkpoint')[-1]}"
        if damage == "flip":
            member.disk.flip_bit(newest, 200, 1)
        else:
            member.disk.open(newest).truncate(100)
        await again(member)
        await stage.agreed(names(60))
        assert any("passed over a metadata snapshot" in line for line in member.lines)

    play(story, count=1, settings={**OFTEN, "metadata.max.retention.bytes": "100000"})


def test_without_any_whole_snapshot_of_what_is_gone_from_the_log_it_does_not_start():
    async def story(stage):
        [member] = stage.members
        await decide_many(stage, 3)
        member.quorum.log.roll(0)
        await decide_many(stage, 300, "u")
        await stage.until(lambda: len(member.files(".log")) == 1 and member.files(".log")[0][:20] != "0" * 20)
        for name in member.files(".checkpoint"):
            member.disk.open(f"{DIRECTORY}/{name}").truncate(100)
        with pytest.raises(StorageError, match="no whole snapshot"):
            await again(member)

    play(story, count=1, settings=OFTEN)


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_follower_that_is_too_far_behind_fetches_a_snapshot(seed):
    async def story(stage):
        leader = await stage.active()
        follower = next(member for member in stage.members if member is not leader)
        await decide_many(stage, 3, "early")
        follower.host.kill()
        await decide_many(stage, 120)
        await stage.until(lambda: leader.quorum.log.log_start_offset > 10)
        follower.host.restart()
        await follower.start()
        await stage.agreed(names(3, "early") + names(120), stage.members)
        assert follower.quorum.log.log_start_offset > 10
        await again(follower, power_loss=True)
        await stage.decide("last")
        await stage.agreed(["last", *names(3, "early"), *names(120)], stage.members)

    play(story, seed=seed, settings={**OFTEN, "controller.quorum.fetch.snapshot.max.bytes": "700"})


def test_a_snapshot_that_arrives_rotten_is_not_used():
    async def story(stage):
        leader = await stage.active()
        follower = next(member for member in stage.members if member is not leader)
        follower.host.kill()
        await decide_many(stage, 120)
        await stage.until(lambda: leader.quorum.log.log_start_offset > 10)
        await asyncio.sleep(1)
        rotten = leader.files(".checkpoint")[-1]
        leader.disk.flip_bit(f"{DIRECTORY}/{rotten}", 200, 1)
        follower.host.restart()
        await follower.start()
        await asyncio.sleep(3)
        assert any("did not arrive whole" in line for line in follower.lines)
        assert not follower.topics
        await decide_many(stage, 60, "u")  # brings a new one
        await stage.agreed(names(120) + names(60, "u"), stage.members)

    play(story, settings=OFTEN)


# Transactions


def test_a_large_decision_is_one_transaction():
    many = [f"t{i}" for i in range(2 * BATCH_RECORDS_MAX + 1)]

    async def story(stage):
        await stage.decide("before")
        member = await stage.active()
        end_offset = member.quorum.log.log_end_offset
        await stage.decide(*many)
        assert member.quorum.log.log_end_offset == end_offset + len(many) + 2
        await stage.decide("after")
        await stage.agreed(["before", *many, "after"])
        for each in stage.members:
            assert {len(image.topics) for image in each.applied} <= {0, 1, len(many) + 1, len(many) + 2}

    play(story, settings={"controller.quorum.fetch.max.bytes": "1000"})


def torn(member, *records):
    """Append records to the log of a member that is down, as its leader's last words."""
    log = member.disk.open(f"{DIRECTORY}/{'0' * 20}.log")
    end_offset, epoch = member.quorum.log.log_end_offset, member.quorum.log.epochs.latest
    builder = BatchBuilder()
    for record in records:
        builder.append(None, framing.encode(record, 0), timestamp=1)
    batch = builder.build()
    assign(batch, end_offset, epoch)
    log.append(batch)
    log.sync_blocking()


def test_a_transaction_that_never_ended_is_aborted_by_the_next_leader():
    async def story(stage):
        [member] = stage.members
        await stage.decide("before")
        member.host.kill()
        torn(member, BeginTransactionRecord(), topic("torn"))
        member.host.restart()
        await member.start()
        assert await stage.decide("after") == ["before"]
        await again(member)
        await stage.agreed(["before", "after"])
        assert await stage.decide("more") == ["after", "before"]

    play(story, count=1)


def test_a_transaction_that_ended_counts():
    async def story(stage):
        [member] = stage.members
        await stage.decide("before")
        member.host.kill()
        torn(member, BeginTransactionRecord(), topic("a"), EndTransactionRecord(), topic("b"))
        member.host.restart()
        await member.start()
        await stage.agreed(["before", "a", "b"])

    play(story, count=1)


def test_an_aborted_transaction_leaves_nothing_but_what_was_around_it():
    async def story(stage):
        [member] = stage.members
        await stage.decide("x")
        member.host.kill()
        torn(member, topic("a"), BeginTransactionRecord(), topic("b"), AbortTransactionRecord(), topic("c"))
        member.host.restart()
        await member.start()
        await stage.agreed("acx")

    play(story, count=1)


# The vote


def test_the_epoch_rises_at_each_start():
    async def story(stage):
        [member] = stage.members
        epochs = []
        for i in range(3):
            await stage.decide(f"t{i}")
            epochs.append(member.quorum.committed.epoch)
            assert json.loads(member.text("quorum-state"))["leaderEpoch"] == epochs[-1]
            await again(member)
        assert epochs[0] < epochs[1] < epochs[2]

    play(story, count=1)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"leaderId":1,', b"\xff\xfe"])
def test_a_vote_that_cannot_be_read_is_not_guessed_at(content):
    async def story(stage):
        [member] = stage.members
        await stage.decide("a")
        member.disk.write_file(f"{DIRECTORY}/quorum-state", content)
        with pytest.raises(StorageError, match="quorum-state can't be read"):
            await again(member)

    play(story, count=1)


# Directories of others


def of_one(member):
    """A metadata log as a quorum of one left it: no snapshot, no voters, `quorum-state` in version 0."""
    member.disk.mkdir(DIRECTORY)
    builder = BatchBuilder()
    builder.append(None, framing.encode(FeatureLevelRecord(name="metadata.version", feature_level=30), 0), timestamp=1)
    builder.append(None, framing.encode(topic("old"), 0), timestamp=1)
    batch = builder.build()
    assign(batch, 0, 1)
    log = member.disk.open(f"{DIRECTORY}/{'0' * 20}.log", create=True)
    log.append(batch)
    log.sync_blocking()
    state = {
        "clusterId": "",
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}],
        "data_version": 0,
    }
    member.disk.write_file(f"{DIRECTORY}/quorum-state", json.dumps(state).encode())


@pytest.mark.parametrize(
    "settings", [{}, {"controller.quorum.voters": "", "controller.quorum.bootstrap.servers": "n1:9093"}]
)
def test_a_directory_of_a_quorum_of_one_opens(settings):
    async def story(stage):
        of_one(stage.members[0])
        await stage.start()
        assert await stage.decide("new") == ["old"]

    play(story, count=1, settings=settings, start=False)


def formatted(member, voters):
    """A metadata log dir as `storage format` leaves it: who votes first."""
    member.disk.mkdir(DIRECTORY)
    message = decode_data("VotersRecord", 0, voters_record(voters)[1])
    chunks = snapshot.write_records([], 30, (0, 0), kraft_version=1, voters=message, timestamp_ms=1)
    member.disk.write_file(f"{DIRECTORY}/{'0' * 20}-{'0' * 10}.checkpoint", b"".join(chunks))


DYNAMIC = {"controller.quorum.voters": "", "controller.quorum.bootstrap.servers": "n1:9093,n2:9093,n3:9093"}


def voter(node_id):
    return VoterNode(ReplicaKey(node_id, directory_id(node_id)), {"CONTROLLER": Address(f"n{node_id}", 9093)}, range(2))


def test_voters_come_from_the_disk_and_then_from_the_log():
    async def story(stage):
        first_voters = VoterSet([voter(1), voter(2), voter(3)])
        for member in stage.members:
            formatted(member, first_voters)
        await stage.start()
        await stage.decide("a")
        await stage.agreed("a")
        for member in stage.members:
            assert (member.quorum.raft.voters, member.quorum.raft.kraft_version) == (first_voters, 1)
            assert json.loads(member.text("quorum-state"))["data_version"] == 1
        await decide_many(stage, 60)
        for member in stage.members:
            await again(member, power_loss=True)
        await stage.decide("b")
        await stage.agreed(["a", "b", *names(60)])
        assert all(member.quorum.raft.voters == first_voters for member in stage.members)

    play(story, settings={**DYNAMIC, **OFTEN}, start=False)


def test_a_directory_whose_name_was_not_on_the_device_yet_survives_from_the_first_start_on():
    async def story(stage):
        [member] = stage.members
        formatted(member, VoterSet([voter(1)]))  # and its parent was not synced
        await stage.start()
        await stage.decide("a")
        for _ in range(5):
            await again(member, power_loss=True)
            await stage.agreed("a")

    play(story, count=1, settings=DYNAMIC, start=False)


# Observers


def test_a_broker_follows_and_starts_from_its_own_snapshot():
    async def story(stage):
        await decide_many(stage, 50)
        broker = Member(stage, 7, roles="broker")
        await broker.start()
        await stage.agreed(names(50), [broker])
        await decide_many(stage, 50, "u")
        await again(broker)
        await stage.decide("last")
        await stage.agreed(["last", *names(50), *names(50, "u")], [broker])
        assert not broker.quorum.is_active
        assert not broker.failures

    play(story, settings=OFTEN)


def test_an_observer_alone_decides_nothing():
    async def story(stage):
        broker = Member(stage, 7, roles="broker")
        await broker.start()
        await asyncio.sleep(10)
        assert broker.quorum.leader[1] == -1
        assert not broker.applied

    play(story, start=False)


def test_a_stop_leaves_a_log_that_is_opened_without_a_scan():
    async def story(stage):
        [member] = stage.members
        await stage.decide("a")
        end_offset = member.quorum.log.log_end_offset
        await stage.on(member, member.stop())
        member.host.kill()
        member.host.restart()
        await member.start()
        assert member.quorum.log.log_end_offset >= end_offset
        assert await stage.decide("b") == ["a"]

    play(story, count=1)


def test_a_node_that_stops_in_order_spares_its_next_start_a_long_replay(monkeypatch):
    monkeypatch.setattr(quorum, "WORTH_A_SNAPSHOT_BYTES", 2_000)

    async def story(stage):
        await decide_many(stage, 60)
        for member in stage.members:
            assert not member.files(".checkpoint")
            await stage.on(member, member.stop())
            assert member.files(".checkpoint"), "it had more to replay than a snapshot is worth"
            member.host.kill()
            member.host.restart()
            await member.start()
        await stage.agreed(names(60), stage.members)

    play(story)


# The device


def test_what_was_decided_after_a_failed_sync_and_a_restart_survives_a_power_loss():
    async def story(stage):
        [member] = stage.members
        await stage.decide("a")
        member.disk.faults.set(DIRECTORY, Fault.SYNC_ERROR)
        with pytest.raises((OSError, KafkaError)):
            await stage.on(member, member.quorum.decide(adding("b")))
        member.failures.clear()
        member.disk.faults.clear()
        await again(member)
        await stage.decide("c")
        await again(member, power_loss=True)
        await stage.agreed(["a", "b", "c"])

    for seed in range(10):
        play(story, count=1, seed=seed)
