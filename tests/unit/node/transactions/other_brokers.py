"""The other brokers, played by the test: what they were asked, and what they answer when the test says so."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import MetadataImage
from strandline.metadata.replay import replay
from strandline.node.transactions.broker_requests import BrokerRequests


@dataclass
class AskedBroker:
    broker_id: int
    message: Any
    answer: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def refuse(self) -> None:
        self.answer.set_exception(KafkaError(ErrorCode.NETWORK_EXCEPTION, "the connection is gone"))


class PlayedBrokers(BrokerRequests):
    def __init__(self) -> None:
        self.asked: list[AskedBroker] = []
        self.tasks: set[asyncio.Task[None]] = set()

    async def ask(self, broker_id: int, api_key: int, message: Any, timeout_s: float) -> Any:
        asked = AskedBroker(broker_id, message)
        self.asked.append(asked)
        return await asked.answer

    def spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def next(self, count: int = 1) -> list[AskedBroker]:
        """Until so many were asked; they are no longer listed."""
        async with asyncio.timeout(5):
            while len(self.asked) < count:  # noqa: ASYNC110 - the loop has nothing to wait for but its own turns
                await asyncio.sleep(0)
        found, self.asked = self.asked, []
        return found


def image_of(brokers: int, **leaders: tuple[int, ...]) -> MetadataImage:
    """Topics with the leader of each of their partitions. Node 1 is the one that is tested."""
    records: list[Any] = [
        r.RegisterBrokerRecord(
            broker_id=broker_id, broker_epoch=broker_id, incarnation_id=Uuid(bytes(16)), end_points=(), fenced=False
        )
        for broker_id in range(1, brokers + 1)
    ]
    for number, (name, led_by) in enumerate(leaders.items(), 1):
        topic_id = Uuid(bytes([number]) * 16)
        records.append(r.TopicRecord(name=name, topic_id=topic_id))
        records += [
            r.PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=(leader,),
                isr=(leader,),
                leader=leader,
                leader_epoch=0,
                partition_epoch=0,
            )
            for index, leader in enumerate(led_by)
        ]
    return replay(MetadataImage(), records, len(records), 1)
