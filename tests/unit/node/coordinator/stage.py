"""A coordinator with real parts in a simulated world:
logs, requests in all their bytes, followers that a test moves by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any

from strandline.api import heartbeat, join_group, offset_commit, offset_fetch
from strandline.groups.shard import GroupShard
from strandline.node.coordinator.runner import ShardRunner
from strandline.records.header import iterate
from strandline.replica.partition import Partition
from strandline.sim.world import World
from strandline.wire import messages
from tests.unit.api.conftest import TestBroker, registration

TOPIC = "__consumer_offsets"
Commit, Fetch, Join = (messages.request(api.KEY) for api in (offset_commit, offset_fetch, join_group))


class Coordination:
    """Node 1 leads the only partition of `__consumer_offsets`, and what groups consume is topic `t`."""

    def __init__(self, broker: TestBroker, disk: Any, *replicas: int, **configs: str) -> None:
        self.broker = broker
        self.disk = disk
        broker.commit([registration(node_id) for node_id in (2, 3)])
        broker.create("t", (1,), (1,))
        texts = {name.replace("_", "."): value for name, value in configs.items()}
        broker.create(TOPIC, replicas or (1,), configs={"cleanup.policy": "compact", **texts})

    @property
    def partition(self) -> Partition:
        return self.broker.parts.hosted.by_name[TOPIC, 0]

    @property
    def runner(self) -> ShardRunner[GroupShard]:
        return self.broker.groups._runners[0]

    async def loaded(self) -> Coordination:
        await asyncio.sleep(0.1)
        assert self.runner.shard is not None
        return self

    def ask(self, api: ModuleType, version: int, **fields: Any) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(self.broker.call(api, version, **fields))

    def commit(self, offset: int = 1, group: str = "g", index: int = 0, metadata: str = "") -> asyncio.Task[Any]:
        partition = Commit.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=metadata
        )
        topic = Commit.OffsetCommitRequestTopic(name="t", partitions=[partition])
        return self.ask(offset_commit, 8, group_id=group, topics=[topic])

    def fetch(self, group: str = "g", version: int = 8) -> asyncio.Task[Any]:
        topics = [Fetch.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        return self.ask(offset_fetch, version, groups=[Fetch.OffsetFetchRequestGroup(group_id=group, topics=topics)])

    def join(self, group: str = "g", **fields: Any) -> asyncio.Task[Any]:
        protocols = [Join.JoinGroupRequestProtocol(name="range", metadata=b"")]
        fields = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, **fields}
        return self.ask(join_group, 3, group_id=group, protocol_type="consumer", protocols=protocols, **fields)

    def heartbeat(self, group: str = "g", generation: int = 1, member_id: str = "m") -> asyncio.Task[Any]:
        return self.ask(heartbeat, 3, group_id=group, generation_id=generation, member_id=member_id)

    def replicate(self, *followers: int) -> None:
        """These have everything by now."""
        for follower in followers or (2, 3):
            self.broker.follow(follower, self.partition.log.log_end_offset, TOPIC)

    @property
    def batches(self) -> list[int]:
        """Records in each batch of the log."""
        segment = self.partition.log.segments.active
        return [header.records_count for _, header in iterate(segment.file.read_blocking(0, segment.size))]


def committed(reply: Any) -> int:
    """The error of the only partition that was committed."""
    return int(reply.topics[0].partitions[0].error_code)


def fetched(reply: Any) -> tuple[int, int]:
    """The error of the only group that was asked for, and the only offset; -2 if there is none because of the error."""
    [group] = reply.groups
    return group.error_code, group.topics[0].partitions[0].committed_offset if group.topics else -2


Story = Callable[[TestBroker, Any], Coroutine[Any, Any, None]]


def in_simulation(story: Story, **settings: str) -> None:
    world = World(1)
    node = world.node("n1")
    node.disk.cold_probability = 0
    texts = {name.replace("_", "."): text for name, text in settings.items()}

    async def main() -> None:
        await node.spawn(on_node())

    async def on_node() -> None:
        broker = TestBroker(node.disk, "/data", texts, node.clock)
        try:
            await story(broker, node.disk)
        finally:
            broker.groups.close()

    try:
        world.run(main())
    finally:
        world.close()
