"""A whole node: what it refuses to be, how it fails, how it stops."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio
import json

import pytest

from strandline.errors import ErrorCode
from strandline.log import checkpoints
from strandline.node.log_effects import perform
from strandline.node.node import NodeFailed
from strandline.ports import WORKERS_MAX
from strandline.raft.messages import ReplicaKey, VoteRequest
from strandline.sim.faults import Fault
from strandline.wire import messages

from .conftest import PRODUCE, Produce, batch, produce, values_of
from .lives import METADATA_DIR, lives

METADATA, INCREMENTAL_ALTER_CONFIGS = 3, 44
MARK = f"/data/{checkpoints.CLEAN_SHUTDOWN_FILE}"
RECOVERY_POINTS = checkpoints.RECOVERY_POINT_CHECKPOINT


# What it refuses


def test_a_broker_that_finds_no_controller_says_so_and_does_not_start():
    async def never(stage):
        pytest.fail("it started")

    with pytest.raises(NodeFailed, match="could not be registered within 5 s"):
        lives(
            never,
            process_roles="broker",
            listeners="PLAINTEXT://n1:9092",
            controller_quorum_voters="2@n2:9093",
            initial_broker_registration_timeout_ms="5000",
        )


def test_a_voter_alone_among_three_elects_nobody():
    async def never(stage):
        pytest.fail("it started")

    with pytest.raises(NodeFailed, match="no leader of the quorum is known"):
        lives(never, controller_quorum_voters="1@n1:9093,2@n2:9093,3@n3:9093")


def test_the_metadata_log_is_nobodys_topic():
    name = "__cluster_metadata"

    async def story(stage):
        end_offset = stage.node.quorum.log.log_end_offset
        request = messages.request(METADATA)
        wanted = request(topics=[request.MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        [answer] = (await stage.call(METADATA, 9, wanted)).topics
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await stage.create_topic(name, 1) == ErrorCode.INVALID_REQUEST
        data = [Produce.PartitionProduceData(index=0, records=batch(b"v"))]
        topic_data = [Produce.TopicProduceData(name=name, partition_data=data)]
        reply = await stage.call(PRODUCE, 9, Produce(acks=-1, timeout_ms=1000, topic_data=topic_data))
        assert reply.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert stage.node.quorum.log.log_end_offset == end_offset
        assert not stage.node.quorum.committed.topics

    lives(story)


# Starting, and no further


UNREACHABLE = {
    "process_roles": "broker",
    "listeners": "PLAINTEXT://n1:9092",
    "controller_quorum_voters": "2@n2:9093",
    "initial_broker_registration_timeout_ms": "5000",
}


def mark(stage, path="/data"):
    """The broker epoch in the mark of a clean shutdown; None if there is no mark."""
    file = f"{path}/{checkpoints.CLEAN_SHUTDOWN_FILE}"
    return json.loads(stage.disk.read_file(file))["brokerEpoch"] if stage.disk.exists(file) else None


async def stops_clean(stage):
    await stage.start()
    await stage.create()
    await stage.node.stop()
    assert mark(stage) is not None
    stage.epoch = mark(stage)


async def stops_dirty(stage):
    await stage.start()
    await stage.create()


async def told_to_stop(stage):
    starting = asyncio.create_task(stage.start())
    await asyncio.sleep(1)
    starting.cancel()
    before = stage.world.loop.time()
    await asyncio.wait([starting])
    assert starting.cancelled()
    assert stage.world.loop.time() - before < 1


async def never_registered(stage):
    with pytest.raises(NodeFailed, match="could not be registered within 5 s"):
        await stage.start()


@pytest.mark.parametrize("ends", [told_to_stop, never_registered])
def test_a_broker_that_finds_no_controller_leaves_its_log_dirs_as_they_were(ends):
    async def second(stage):
        stage.change(**UNREACHABLE)
        await ends(stage)
        assert mark(stage) == stage.epoch, "its next registration still tells when it last stopped"
        (await asyncio.get_running_loop().create_server(asyncio.Protocol, "n1", 9092)).close()

    lives(stops_clean, second, started=False)


@pytest.mark.parametrize("ends", [told_to_stop, never_registered])
def test_what_was_not_clean_is_not_made_so_by_a_start_that_fails(ends):
    async def second(stage):
        stage.change(**UNREACHABLE)
        await ends(stage)
        assert mark(stage) is None

    lives(stops_dirty, second, started=False)


def test_a_port_in_use_gives_back_the_others():
    async def second(stage):
        taken = await asyncio.get_running_loop().create_server(asyncio.Protocol, "n1", 9093)
        with pytest.raises(OSError, match="in use"):
            await stage.start()
        assert mark(stage) == stage.epoch
        taken.close()
        (await asyncio.get_running_loop().create_server(asyncio.Protocol, "n1", 9092)).close()

    lives(stops_clean, second, started=False)


def test_a_metadata_log_that_fails_while_the_node_starts_ends_the_start():
    async def second(stage):
        stage.change(controller_quorum_voters="1@n1:9093,2@n2:9093,3@n3:9093")
        starting = asyncio.create_task(stage.start())
        await asyncio.sleep(0.5)
        stage.disk.faults.set(METADATA_DIR, Fault.SYNC_ERROR)
        vote = VoteRequest(ReplicaKey(1), stage.node.quorum.leader[0] + 1, ReplicaKey(2), 0, 0, pre_vote=False)
        stage.node.quorum.submit(vote, lambda response: None)
        with pytest.raises(NodeFailed, match="metadata log failed"):
            await asyncio.wait_for(starting, 1)
        assert mark(stage) is None

    lives(stops_clean, second, started=False)


def test_a_node_that_is_told_to_stop_while_its_logs_are_opened_opens_them_all_first():
    async def second(stage):
        stage.lines.clear()
        stage.disk.offload_s = (5.0, 5.0)
        starting = asyncio.create_task(stage.start())
        for _ in range(1000):
            if stage.logged("registered"):
                break
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        starting.cancel()
        await asyncio.wait([starting])
        assert mark(stage) > stage.epoch
        assert [file.path for file in stage.disk._files] == []

    lives(stops_clean, second, started=False)


def test_a_controller_that_is_no_broker_stops_in_order():
    async def first(stage):
        await stage.node.stop()
        assert mark(stage) == -1

    lives(first, left_in_order, process_roles="controller", listeners="CONTROLLER://n1:9093")


# Failing


@pytest.mark.parametrize("fault", [Fault.FULL, Fault.SYNC_ERROR])
def test_a_metadata_log_that_fails_ends_the_node(fault):
    async def story(stage):
        stage.disk.faults.set(METADATA_DIR, fault)
        creating = asyncio.create_task(stage.create_topic("t", 1))
        with pytest.raises(NodeFailed):
            await asyncio.wait_for(stage.node.failed(), 10)
        stage.disk.faults.clear()
        creating.cancel()
        await stage.node.stop()
        assert not stage.disk.exists(MARK)

    lives(story)


def test_whoever_stops_waiting_for_the_failure_does_not_hide_it_from_others():
    async def story(stage):
        waiting = asyncio.create_task(stage.node.failed())
        await asyncio.sleep(0)
        waiting.cancel()
        stage.disk.faults.set("/data/recovery-point", Fault.WRITE_ERROR)
        await stage.create()
        await stage.node.replicas.checkpoint(stage.log_dir)
        with pytest.raises(NodeFailed):
            await stage.node.failed()

    lives(story)


# Stopping


async def left_in_order(stage):
    assert stage.logged('"clean": true') + stage.logged('"clean":true') == 2, "stopped, then started"


def test_a_node_that_stops_while_a_checkpoint_is_being_written():
    async def first(stage):
        partition = await stage.create()
        stage.append(partition, b"a")
        stage.disk.offload_s = (5.0, 5.0)
        await asyncio.sleep(1)
        stage.disk.offload_s = (0.001, 0.001)
        stage.append(partition, b"b")
        await stage.node.stop()
        assert stage.disk.exists(MARK)
        for _ in range(2):
            assert stage.text(RECOVERY_POINTS) == "0\n1\nt 0 2\n"
            await asyncio.sleep(10)  # an older checkpoint that was still on its way would be there now

    async def second(stage):
        assert values_of(stage.partition()) == [b"a", b"b"]
        await left_in_order(stage)

    lives(first, second, replica_high_watermark_checkpoint_interval_ms="500")


def test_a_node_that_stops_while_records_are_being_flushed():
    async def first(stage):
        partition = await stage.create(flush_messages="1")
        stage.flushes_take(2)
        stage.connect().feed(produce(b"a"))
        await asyncio.sleep(0.5)
        assert partition.high_watermark == 0
        await stage.node.stop()
        assert partition.high_watermark == 1, "nothing is under way any more"
        assert stage.text(RECOVERY_POINTS) == "0\n1\nt 0 1\n"

    async def second(stage):
        assert values_of(stage.partition()) == [b"a"]
        await left_in_order(stage)

    lives(first, second)


def test_a_node_that_stops_while_a_decision_is_being_committed():
    async def first(stage):
        stage.flushes_take(2)
        creating = asyncio.create_task(stage.create_topic("t", 1))
        await asyncio.sleep(0.5)
        await stage.node.stop()
        creating.cancel()
        assert stage.disk.exists(MARK)

    async def second(stage):
        stage.flushes_take(0.001)
        stage.append(stage.partition(), b"a")
        await left_in_order(stage)

    lives(first, second)


def test_a_stopped_node_holds_no_file_open():
    async def story(stage):
        stage.append(await stage.create())
        await stage.node.stop()
        assert [file.path for file in stage.disk._files] == []

    lives(story)


def test_a_log_dir_that_failed_gets_no_clean_mark():
    async def story(stage):
        await stage.create_topic("t", 2)
        stage.disk.faults.set("/b/replication-offset", Fault.WRITE_ERROR)
        await stage.node.stop()
        assert [stage.disk.exists(f"{path}/{checkpoints.CLEAN_SHUTDOWN_FILE}") for path in ("/a", "/b")] == [
            True,
            False,
        ]

    lives(story, log_dirs="/a,/b")


# Devices


def test_a_slow_log_dir_holds_up_neither_the_metadata_log_nor_the_other():
    """More is read in one log dir than there are workers, and nothing comes back: decisions are committed all the same."""

    async def story(stage):
        disk = stage.disk
        topics = {}
        for name in ("t", "u"):
            assert await stage.create_topic(name, 1) == ErrorCode.NONE
            partition = stage.node.replicas.partitions[name, 0]
            topics[partition.log.directory.rpartition("/")[0]] = partition
        assert sorted(topics) == ["/a", "/b"], "one in each log dir"
        disk.faults.slow(topics["/a"].log.directory, 1e6)
        disk.faults.slow("/a/replication-offset", 1e6)
        hung = [
            asyncio.create_task(disk.offload(lambda: None, topics["/a"].log.directory)) for _ in range(2 * WORKERS_MAX)
        ]
        request = messages.request(INCREMENTAL_ALTER_CONFIGS)
        config = request.AlterableConfig(name="retention.ms", config_operation=0, value="100000")
        resource = request.AlterConfigsResource(resource_type=2, resource_name="u", configs=[config])
        async with asyncio.timeout(1):
            reply = await stage.call(INCREMENTAL_ALTER_CONFIGS, 1, request(resources=[resource], validate_only=False))
        assert reply.responses[0].error_code == ErrorCode.NONE
        for partition in topics.values():
            stage.append(partition)
        await asyncio.sleep(2)
        name = checkpoints.REPLICATION_OFFSET_CHECKPOINT
        assert disk.read_file(f"/b/{name}").decode() == f"0\n1\n{topics['/b'].topic} 0 1\n"
        async with asyncio.timeout(1):
            await perform(topics["/b"].log.flush())
        assert not any(task.done() for task in hung)

    lives(story, log_dirs="/a,/b", metadata_log_dir="/a", replica_high_watermark_checkpoint_interval_ms="500")
