"""The controller in a node: what it does when it becomes active, and when it is not any more."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from strandline.config.node import NodeConfig
from strandline.config.properties import of
from strandline.controller.leader_balance import ELECTIONS_PER_STEP_MAX
from strandline.controller.liveness import Liveness
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.features import bootstrap_features, bootstrap_records
from strandline.metadata.image import BROKER_RESOURCE, BrokerImage, MetadataImage
from strandline.metadata.replay import replay
from strandline.node.controller_server import ControllerServer
from strandline.runtime.clock import SystemClock
from strandline.runtime.logging import JsonLogger
from strandline.sim.world import World

CONFIG = {
    "node.id": "1",
    "process.roles": "controller",
    "listeners": "CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "log.dirs": "/data",
}
BROKER = BrokerImage(2, epoch=7, incarnation_id=Uuid(bytes(16)), endpoints=(), fenced=False)
TOPIC_ID = Uuid(b"t" * 16)


class Leading:
    """A quorum whose leadership goes, or does not, while a decision is being committed."""

    is_active = True

    def __init__(self, *, lasts: bool) -> None:
        self.tip = MetadataImage(brokers={2: BROKER})
        self.lasts = lasts
        self.written: list[Any] = []

    async def decide(self, decision: Any) -> Any:
        records, answer = decision(self.tip)
        if not self.lasts:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the leader of epoch 2 is node 2")
        self.tip = replay(self.tip, records, self.tip.end_offset + len(records), 1)
        self.written += records
        return answer


def server(quorum: Any, liveness: Liveness, **settings: str) -> ControllerServer:
    texts = {name.replace("_", "."): value for name, value in settings.items()}
    config = NodeConfig.build(of({**CONFIG, **texts}), insecure=True)
    bootstrap = [*bootstrap_records(bootstrap_features())]
    made = ControllerServer(config, quorum, liveness, SystemClock(), JsonLogger(lambda line: None, 20))
    made.use_bootstrap(bootstrap)
    return made


async def test_a_new_controller_writes_what_a_cluster_begins_with_and_takes_the_sessions_over():
    quorum, liveness = Leading(lasts=True), Liveness(3.0)
    await server(quorum, liveness).on_active(1)
    assert quorum.written
    assert liveness.next_deadline() is not None


async def test_one_that_is_deposed_before_its_first_records_are_committed_has_no_sessions():
    liveness = Liveness(3.0)
    with pytest.raises(KafkaError, match="epoch 2"):
        await server(Leading(lasts=False), liveness).on_active(1)
    assert liveness.next_deadline() is None


async def run_jobs_of(quorum: Leading, seconds: float, **settings: str) -> None:
    controller = server(quorum, Liveness(3.0), **settings)
    jobs = [asyncio.create_task(job) for job in controller.jobs()]
    await asyncio.sleep(seconds)
    for job in jobs:
        job.cancel()


def test_what_an_operator_allows_the_controller_alone_counts_for_what_it_does_by_itself():
    quorum = Leading(lasts=True)
    lost = r.PartitionRecord(partition_id=0, topic_id=TOPIC_ID, replicas=(2, 3), isr=(3,), leader=-1)
    allowed = r.ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name="1", name="unclean.leader.election.enable", value="true"
    )
    quorum.tip = replay(quorum.tip, [r.TopicRecord(name="t", topic_id=TOPIC_ID), lost, allowed], 3, 1)
    with World(1) as world:
        world.run(run_jobs_of(quorum, unclean_leader_election_interval_ms="1000", seconds=2))
    assert quorum.tip.topics["t"].partitions[0].leader == 2


def test_leaders_are_balanced_to_the_end_though_each_step_is_bounded():
    count = 2 * ELECTIONS_PER_STEP_MAX + 1
    quorum = Leading(lasts=True)
    quorum.tip = MetadataImage(brokers={2: BROKER, 3: replace(BROKER, broker_id=3)})
    partitions = [
        r.PartitionRecord(partition_id=index, topic_id=TOPIC_ID, replicas=(2, 3), isr=(2, 3), leader=3)
        for index in range(count)
    ]
    quorum.tip = replay(quorum.tip, [r.TopicRecord(name="t", topic_id=TOPIC_ID), *partitions], count + 1, 1)

    with World(1) as world:
        world.run(run_jobs_of(quorum, leader_imbalance_check_interval_seconds="300", seconds=301))
    assert {partition.leader for partition in quorum.tip.topics["t"].partitions} == {2}


def test_a_controller_that_stood_still_itself_reads_what_brokers_sent_before_it_fences_them():
    quorum, liveness = Leading(lasts=True), Liveness(3.0)
    with World(1) as world:
        host = world.node("c1")

        async def life() -> None:
            config = NodeConfig.build(of(CONFIG), insecure=True)
            logger = JsonLogger(lambda line: None, 20)
            controller = ControllerServer(config, quorum, liveness, host.clock, logger)
            liveness.take_over(quorum.tip, host.clock.monotonic())
            fencing = asyncio.ensure_future(controller.jobs()[0])
            await asyncio.sleep(0.5)
            # Its heartbeats came while the node stood still, and are read right after it goes on.
            await asyncio.sleep(6.0)
            liveness.contact(2, BROKER.epoch, host.clock.monotonic())
            await asyncio.sleep(1.0)
            assert not quorum.written
            await asyncio.sleep(5.0)
            assert quorum.written, "it is gone indeed"
            fencing.cancel()

        async def story() -> None:
            living = host.spawn(life())
            await asyncio.sleep(1.0)
            host.pause()
            await asyncio.sleep(5.6)
            host.resume()
            await living

        world.run(story())
