"""Whole batches that the caller encoded, sent by a producer for callers without an event loop.

    with BatchProducer(client) as producer:
        for partition, batch in encoded:
            producer.send("topic", partition, batch)
        producer.flush()

Many batches are in flight at once, in order within each partition; the same rules as for single records keep them in
the log once (`core/partition_queue.py`). Between calls nothing happens, but time between calls counts for no timeout.

Always true: after `flush` returned, every batch that was sent is acknowledged. The first failure is raised by the call
that notices it and by every one after it.
"""

from __future__ import annotations

from strandline.client import blocking
from strandline.client.config import ProducerConfig
from strandline.client.core.whole_batches import Ledger, WrittenRange
from strandline.client.flow import producer
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.records.ready import ReadyBatch

__all__ = ["BatchProducer", "WrittenRange"]

TURNS_MAX = 8
"""How often `send` looks what the network has to say:
an answer takes a few turns until it makes room for the next request.
"""
AWAY_S = 1.0
"""A caller who comes back later than this was away."""


class BatchProducer:
    def __init__(
        self,
        client: blocking.Client,
        config: ProducerConfig | None = None,
        *,
        allow_auto_topic_creation: bool = True,
    ) -> None:
        self._scheduler = client.scheduler
        self._cluster = client.flow.cluster
        self._flow = producer.FlowProducer(client.flow, config, allow_auto_topic_creation=allow_auto_topic_creation)
        self._ledger = Ledger()
        self._asked: set[str] = set()
        """Topics; what the client knew before may be old."""
        self._left_at = self._scheduler.now()

    def partitions_count(self, topic: str) -> int:
        """Asked anew by every producer.
        UNKNOWN_TOPIC_OR_PARTITION with the topic's name if there is none and none is made.
        """
        count = self._cluster.partitions_count(topic) if topic in self._asked else None
        if count is None:
            count = self._scheduler.run(self._flow.partitions_count(topic))
            self._asked.add(topic)
        return count

    def send(self, topic: str, partition: int, batch: ReadyBatch) -> None:
        """Take a batch, waiting while buffer_memory is full. Its bytes are ours from here on."""
        self._come_back()
        if not 0 <= partition < (count := self.partitions_count(topic)):
            text = f"topic '{topic}' has partitions 0-{count - 1}, not {partition}"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        if not self._flow.has_room(len(batch.data)):
            self._scheduler.run(self._flow.room(len(batch.data), self._is_over))
        self._check()
        self._flow.send_whole(topic, partition, batch, self._ledger)
        for _ in range(TURNS_MAX):
            self._scheduler.turn()
            if not self._scheduler.ready:
                break
        self._left_at = self._scheduler.now()
        self._check()

    def flush(self) -> None:
        """Return when everything is acknowledged, or raise the first failure."""
        self._come_back()
        self._scheduler.run(self._flow.flush(self._is_over))
        self._left_at = self._scheduler.now()
        self._check()

    def written(self) -> dict[TopicPartition, WrittenRange]:
        """What is acknowledged so far, by partition."""
        return dict(self._ledger.written)

    def close(self) -> None:
        """Flush, unless something has failed; then give up what is left.
        Raises nothing: `flush` reports what became of it.
        """
        self._come_back()
        self._scheduler.run(self._flow.close(0 if self._is_over() else None))

    def __enter__(self) -> BatchProducer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._scheduler.run(self._flow.close(None if kind is None else 0))

    def _come_back(self) -> None:
        away_s = self._scheduler.now() - self._left_at
        if away_s > AWAY_S:
            self._flow.was_away(away_s)

    def _is_over(self) -> bool:
        return self._ledger.failure is not None

    def _check(self) -> None:
        if self._ledger.failure is not None:
            raise self._ledger.failure
