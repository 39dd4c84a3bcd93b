"""Stories of a node that is killed and started again on the same disk, and what they have in common."""

from __future__ import annotations

from strandline.config.node import NodeConfig
from strandline.config.properties import of
from strandline.node.log_dirs import LogDir, format_dirs
from strandline.node.node import Node
from strandline.replica.partition import Partition
from strandline.runtime.logging import JsonLogger
from strandline.sim.world import World

from .conftest import CREATE_TOPICS, DELETE_TOPICS, Create, Delete, Stage, Story, batch

CLUSTER_ID = "c2ltdWxhdGVkY2x1c3Rlcg"
METADATA_DIR = "/data/__cluster_metadata-0"


class Host(Stage):
    """A stage that any number of nodes enter, one after the other."""

    def make_node(self) -> Node:
        logger = JsonLogger(self.lines.append, 20)
        return Node(self.config, self.disk, self.host.clock, self.host.randomness, logger)

    async def start(self) -> None:
        format_dirs(self.disk, self.config.log_dirs, CLUSTER_ID, 1, self.host.randomness)
        self.node = self.make_node()
        await self.node.start()

    def change(self, **settings: str) -> None:
        """The next node is another one in this."""
        self.texts |= {name.replace("_", "."): value for name, value in settings.items()}
        self.config = NodeConfig.build(of(self.texts), insecure=True)

    @property
    def log_dir(self) -> LogDir:
        return self.node.replicas.log_dirs[0]

    async def create_topic(self, name: str, count: int, **configs: str) -> int:
        """The error code."""
        topic = Create.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        topic.configs = [
            Create.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ]
        reply = await self.call(CREATE_TOPICS, 7, Create(topics=[topic], timeout_ms=1000))
        return int(reply.topics[0].error_code)

    async def delete(self, name: str = "t") -> None:
        message = Delete(topics=[Delete.DeleteTopicState(name=name)], timeout_ms=1000)
        reply = await self.call(DELETE_TOPICS, 6, message)
        assert reply.responses[0].error_code == 0, reply

    def append(self, partition: Partition, *values: bytes, timestamp: int | None = None) -> None:
        now_ms = self.host.clock.wall_ms()
        data = batch(*values or (b"v",), timestamp=now_ms if timestamp is None else timestamp)
        partition.append(memoryview(bytearray(data)), now_ms)

    def text(self, name: str) -> str:
        return self.disk.read_file(f"/data/{name}").decode()


def lives(*stories: Story, power_loss: bool = False, started: bool = True, **settings: str) -> None:
    """Play each story against a node of its own, which is killed, or its host goes dark, at its end. Unless it is to be
    started before, the story does that."""
    with World(1) as world:
        host = Host(world, {name.replace("_", "."): value for name, value in settings.items()})

        async def life(story: Story) -> None:
            if started:
                await host.start()
            await story(host)

        async def main() -> None:
            for i, story in enumerate(stories):
                if i:
                    host.host.power_loss() if power_loss else host.host.kill()
                    host.host.restart()
                await host.host.spawn(life(story))

        world.run(main())
