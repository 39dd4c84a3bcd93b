"""A partition leader made up for tests:
a plain function from a Produce request to its answer, with Kafka's sequence rules.
"""

from __future__ import annotations

from typing import Any

from strandline.client.core.cluster_metadata import ClusterMetadata
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.records.batch import decode
from strandline.records.header import SEQUENCE_MAX, ensure_valid
from strandline.wire import messages

TOPIC_ID = Uuid(b"topic-id-16bytes")


def metadata(
    leaders: dict[int, tuple[int, int]],
    topic: str = "t",
    topic_id: Uuid = TOPIC_ID,
    nodes: tuple[int, ...] = (1, 2),
    error: int = 0,
) -> Any:
    Metadata = messages.response(3)
    return Metadata(
        cluster_id="c",
        controller_id=1,
        brokers=[Metadata.MetadataResponseBroker(node_id=n, host=f"host{n}", port=9092) for n in nodes],
        topics=[
            Metadata.MetadataResponseTopic(
                name=topic,
                topic_id=topic_id,
                error_code=error,
                partitions=[
                    Metadata.MetadataResponsePartition(partition_index=i, leader_id=leader, leader_epoch=epoch)
                    for i, (leader, epoch) in leaders.items()
                ],
            )
        ],
    )


def cluster(leaders: dict[int, tuple[int, int]]) -> ClusterMetadata:
    made = ClusterMetadata()
    made.update(metadata(leaders))
    return made


class PartitionLog:
    """What one partition has, and the last five batches of each producer."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self._producers: dict[tuple[int, int], list[tuple[int, int, int]]] = {}

    def append(self, batch: bytes) -> tuple[ErrorCode, int]:
        header = ensure_valid(batch)
        if header.producer_id >= 0:
            entries = self._producers.get((header.producer_id, header.producer_epoch), [])
            for first, last, offset in entries:
                if (first, last) == (header.base_sequence, header.last_sequence):
                    return ErrorCode.NONE, offset
            # A leader that has nothing of an id takes any sequence, as Kafka's do.
            if entries and header.base_sequence != (entries[-1][1] + 1) & SEQUENCE_MAX:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            entry = (header.base_sequence, header.last_sequence, len(self.values))
            self._producers[header.producer_id, header.producer_epoch] = [*entries, entry][-5:]
        offset = len(self.values)
        self.values += [record.value for record in decode(batch)]
        return ErrorCode.NONE, offset


def batches_of(message: Any, version: int = 13) -> list[tuple[int, bytes]]:
    """What a request carries, through the wire format and back."""
    read = messages.decode_request(0, version, messages.encode_request(0, version, message))
    return [(p.index, bytes(p.records or b"")) for topic in read.topic_data for p in topic.partition_data]


def produced(answers: dict[int, tuple[int, int]], version: int = 13, **fields: Any) -> Any:
    """An answer by partition: error code and base offset."""
    Produce = messages.response(0)
    response = Produce(
        responses=[
            Produce.TopicProduceResponse(
                name="t",
                topic_id=TOPIC_ID,
                partition_responses=[
                    Produce.PartitionProduceResponse(index=i, error_code=code, base_offset=offset, **fields)
                    for i, (code, offset) in answers.items()
                ],
            )
        ]
    )
    return messages.decode_response(0, version, messages.encode_response(0, version, response))
