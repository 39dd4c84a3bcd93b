"""From roles to fetchers (rule I11), from wishes to the controller, from lag to a smaller ISR."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import asyncio
import random

from strandline.api.fetching.follower_sessions import FollowerSessions
from strandline.config.dynamic import DynamicConfig
from strandline.ids import Uuid
from strandline.metadata.image import BrokerImage, Endpoint, MetadataImage, PartitionImage, TopicImage
from strandline.node.broker_addresses import BrokerAddresses
from strandline.node.controller_channel import ControllerChannel
from strandline.node.dir_assignments import DirAssignments
from strandline.node.fetching.fetchers import Fetchers
from strandline.node.fetching.throttles import Throttles
from strandline.node.isr_updates import IsrUpdates
from strandline.node.log_dirs import LogDir
from strandline.node.peers import Peers
from strandline.node.repair import Repair
from strandline.node.replicas import Replicas
from strandline.node.replication import Replication
from strandline.node.scrubber import Scrubber
from strandline.node.signals import ReplicaSignals
from strandline.raft.messages import Address
from strandline.sim.world import World

from .conftest import batch
from .scripted import Controller, config_of, quiet_logger
from .test_isr_updates import ALTER, asked_for, grant

ASSIGN = 73
TOPIC_ID, DIR = Uuid(bytes(15) + b"\7"), Uuid(bytes(15) + bytes([101]))


class Stage:
    """Broker 1 among three, and a controller that grants every wish."""

    def __init__(self, replicas, replication, disk, controller):
        self.replicas = replicas
        self.replication = replication
        self.disk = disk
        self.controller = controller
        self.epoch = 0

    async def apply(self, *partitions):
        """An image with these leaders and replicas of topic `t`."""
        self.epoch += 1
        states = tuple(
            PartitionImage(chosen, chosen, leader, self.epoch, self.epoch, directories=(DIR,) * len(chosen))
            for leader, chosen in partitions
        )
        topic = TopicImage("t", TOPIC_ID, states)
        brokers = {
            broker_id: BrokerImage(
                broker_id, broker_id, Uuid(bytes(16)), (Endpoint("PLAINTEXT", f"b{broker_id}", 9092, 0),), fenced=False
            )
            for broker_id in (1, 2, 3)
        }
        image = MetadataImage(
            end_offset=self.epoch, topics={"t": topic}, topics_by_id={TOPIC_ID: topic}, brokers=brokers
        )
        await self.replicas.apply(image)

    def partition(self, index=0):
        return self.replicas.partitions["t", index]

    def fetched_from(self):
        """By partition."""
        fetchers = self.replication.fetchers
        return {index: fetchers.leader_of(p) for (_, index), p in sorted(self.replicas.partitions.items())}


def play(story, **settings):
    with World(1) as world:
        node = world.node("b1")
        node.disk.cold_probability = 0.0
        controller = Controller({ALTER: grant})
        ended = []

        async def body():
            config = config_of(log_dirs="/a,/b", **settings)
            log_dirs = []
            for i, path in enumerate(config.log_dirs):
                node.disk.mkdir(path)
                log_dirs.append(LogDir(path, Uuid(bytes(15) + bytes([101 + i])), clean=False))
            peers = Peers(
                DynamicConfig(config), node.clock, node.randomness, quiet_logger(), lambda node_id, purpose: None
            )
            leader = (1, 1, Address("c1", 9093))
            channel = ControllerChannel(peers, lambda: leader, config, node.randomness, quiet_logger())
            clock, randomness, logger, dynamic = node.clock, node.randomness, quiet_logger(), DynamicConfig(config)
            signals = ReplicaSignals()
            isr_updates = IsrUpdates(channel, 1, lambda: 9, randomness, logger, ended.append)
            replicas = Replicas(
                dynamic,
                node.disk,
                clock,
                randomness,
                logger,
                log_dirs,
                signals,
                broker_epoch=lambda: 9,
                propose_isr=isr_updates.submit,
                note=lambda kind, reason, **facts: None,
                on_all_dirs_failed=print,
                on_task_ended=ended.append,
            )
            addresses = BrokerAddresses(dynamic, lambda: replicas.image)
            throttles = Throttles(dynamic)
            fetchers = Fetchers(
                config,
                clock,
                randomness,
                logger,
                throttles,
                address_of=addresses.of,
                broker_epoch=lambda: 9,
                on_opened=lambda node_id: None,
                on_closed=lambda node_id, purpose: None,
                on_storage_error=replicas.storage_error,
                on_task_ended=ended.append,
            )
            repair = Repair(
                1,
                peers,
                config.inter_broker_listener,
                addresses.of,
                clock,
                replicas.dependencies.note,
                replicas.storage_error,
                logger,
            )
            replication = Replication(
                replicas,
                fetchers,
                throttles,
                isr_updates,
                DirAssignments(channel, 1, lambda: 9, MetadataImage, randomness, logger, ended.append),
                repair,
                Scrubber(replicas.partitions.values, clock, repair.damaged, replicas.storage_error),
                FollowerSessions(random.Random(1)),
            )
            signals.role_changed.subscribe(replication.role_changed)
            signals.hosted.subscribe(replication.hosted)
            signals.unopened.subscribe(replication.unopened)
            signals.damaged.subscribe(repair.damaged)
            jobs = [asyncio.create_task(job) for job in replication.jobs()]
            await story(Stage(replicas, replication, node.disk, controller))
            for job in jobs:
                job.cancel()
            await replication.close()
            await peers.close()

        async def main():
            await world.node("c1").spawn(controller.serve())
            await node.spawn(body())

        world.run(main())
        assert not [task for task in ended if not task.cancelled() and task.exception() is not None]


def test_i11_what_others_lead_is_fetched_from_them_and_what_is_led_here_from_nobody():
    async def story(stage):
        await stage.apply((1, (1, 2)), (2, (2, 1)), (3, (3, 1)), (-1, (2, 1)), (2, (2, 3)))
        assert stage.fetched_from() == {0: None, 1: 2, 2: 3, 3: None}
        assert {fetcher.leader_id for fetcher in stage.replication.fetchers.fetchers} == {2, 3}

    play(story)


def test_i11_a_new_leader_is_followed_and_one_that_becomes_leader_fetches_no_more():
    async def story(stage):
        for leader, expected in ((2, 2), (3, 3), (-1, None), (2, 2), (1, None), (3, 3)):
            await stage.apply((leader, (1, 2, 3)))
            assert stage.fetched_from() == {0: expected}
            await asyncio.sleep(0)
            assert len(list(stage.replication.fetchers.fetchers)) == (expected is not None)

    play(story)


def test_i11_what_is_gone_is_not_fetched():
    async def story(stage):
        await stage.apply((2, (2, 1)))
        partition = stage.partition()
        await stage.apply((2, (2, 3)))
        assert partition.gone
        assert stage.replication.fetchers.leader_of(partition) is None

    play(story)


def test_i11_what_is_offline_is_not_fetched():
    async def story(stage):
        await stage.apply((2, (2, 1)), (2, (2, 1)))
        first, second = stage.partition(0), stage.partition(1)
        stage.replicas.storage_error(first, OSError("a disk"))
        assert first.offline
        assert stage.replication.fetchers.leader_of(first) is None
        assert stage.replication.fetchers.leader_of(second) == (None if second.offline else 2)
        await stage.apply((3, (2, 3, 1)), (3, (2, 3, 1)))
        assert stage.replication.fetchers.leader_of(first) is None, "nor from the next leader"

    play(story)


def test_a_follower_that_is_late_leaves_the_isr_by_way_of_the_controller():
    async def story(stage):
        await stage.apply((1, (1, 2, 3)))
        stage.partition().append(memoryview(bytearray(batch(b"v"))), 1_000)
        await asyncio.sleep(9)
        assert not stage.controller.requests(ALTER)
        await asyncio.sleep(7)
        [asked] = stage.controller.requests(ALTER)
        assert (asked.broker_epoch, asked_for(asked)) == (9, {0: [1]})
        assert stage.partition().leadership.isr.isr == (1,)
        assert stage.partition().high_watermark == 1
        assert stage.replication.failed_isr_updates == 0

    play(story, replica_lag_time_max_ms="10000")


def test_nothing_is_fetched_after_the_end():
    async def story(stage):
        await stage.apply((2, (2, 1)))
        await stage.replication.close()
        assert not list(stage.replication.fetchers.fetchers)
        await stage.apply((3, (3, 1)))
        assert not list(stage.replication.fetchers.fetchers)

    play(story)


def test_the_leaders_throttle_binds_the_replicas_that_a_topic_names():
    async def story(stage):
        await stage.apply((1, (1, 2)))
        partition, replication = stage.partition(), stage.replication
        replication.replicated(partition, 1_000_000)
        assert not replication.is_leader_throttled(partition), "the topic names no replica"
        stage.replicas.partitions["t", 0].log.config = stage.replicas.config.topic_config(
            {"leader.replication.throttled.replicas": "0:1"}
        )
        assert not replication.is_leader_throttled(partition)
        replication.replicated(partition, 1_000_000)
        assert replication.is_leader_throttled(partition)
        await asyncio.sleep(60)
        assert not replication.is_leader_throttled(partition)

    play(story, leader_replication_throttled_rate="1000")
