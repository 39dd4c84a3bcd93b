"""A real node of one broker in a thread of this process, for readers that block, and what a test does to its topics."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.kafka_cluster import free_ports

from strandline.client.blocking import Admin, Client, Producer, ProducerConfig
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.client.flow.descriptions import NewTopic
from strandline.config.node import NodeConfig
from strandline.config.properties import of
from strandline.ids import Uuid
from strandline.node.log_dirs import format_dirs
from strandline.node.node import Node
from strandline.runtime.clock import SystemClock
from strandline.runtime.disk import FileDisk
from strandline.runtime.logging import LEVELS, JsonLogger

NODE_ID = 1


class Cluster:
    """What tests do from outside, and where readers find it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.client = Client(bootstrap)
        self.admin = Admin(self.client)

    def options(self, **options: object) -> dict[str, str]:
        """Of a source; `startingOffsets="earliest"` and so on, with '_' for '.'."""
        given = {name.replace("_", "."): str(value) for name, value in options.items()}
        return {"kafka.bootstrap.servers": self.bootstrap} | given

    def make(self, topic: str, partitions: int = 1, **configs: str) -> str:
        renamed = {name.replace("_", "."): value for name, value in configs.items()}
        created = self.admin.create_topics([NewTopic(topic, partitions, 1, renamed)])[topic]
        assert not isinstance(created, Exception), created
        self.client.scheduler.run(self.client.flow.refresh({topic}))
        return topic

    def remove(self, topic: str) -> None:
        assert self.admin.delete_topics([topic]) == {topic: None}

    def write(self, topic: str, values: Sequence[bytes], partition: int = 0) -> None:
        with Producer(self.client, ProducerConfig(linger_ms=0)) as producer:
            sent = [
                producer.send(topic, value, partition=partition, timestamp=1_000 + n) for n, value in enumerate(values)
            ]
            producer.flush()
            for record in sent:
                record.result(10)

    def committed(self, group_id: str) -> dict[tuple[str, int], int]:
        found = self.admin.list_group_offsets({group_id: None})[group_id]
        assert not isinstance(found, Exception), found
        return {key: answer.offset for key, answer in found.items() if isinstance(answer, OffsetAndMetadata)}


@contextmanager
def cluster_beside(directory: Path) -> Iterator[Cluster]:
    port, controller_port = free_ports(2)
    properties = {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "log.dirs": str(directory),
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
    }
    randomness = random.Random(8)
    disk = FileDisk()
    format_dirs(disk, [str(directory)], str(Uuid.draw(randomness)), NODE_ID, randomness)
    loop = asyncio.new_event_loop()
    config = NodeConfig.build(of(properties), hostname="localhost")
    node = loop.run_until_complete(_started(config, disk))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    cluster = Cluster(f"127.0.0.1:{port}")
    try:
        yield cluster
    finally:
        cluster.client.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(node.stop())
        loop.close()
        disk.close()


async def _started(config: NodeConfig, disk: FileDisk) -> Node:
    silent = JsonLogger(lambda line: None, LEVELS["critical"])
    node = Node(config, disk, SystemClock(), random.SystemRandom(), silent)
    await node.start()
    return node
