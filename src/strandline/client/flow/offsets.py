"""Questions about offsets, put to the leaders: ListOffsets (2) and OffsetForLeaderEpoch (23).

Always true: an answer is from a leader whose epoch was not older than the one we know of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from strandline.client.core.cluster_metadata import NO_EPOCH
from strandline.client.flow.client import FlowClient
from strandline.client.flow.retry import Answers, by_leader
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import TopicPartition
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.list_offsets import ListOffsetsRequest
    from strandline.wire.stubs.offset_for_leader_epoch import OffsetForLeaderEpochRequest

T = TypeVar("T")

LIST_OFFSETS: Final = 2
OFFSET_FOR_LEADER_EPOCH: Final = 23
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
CONSUMER = -1


class OffsetAndTimestamp(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


class EpochEnd(NamedTuple):
    leader_epoch: int
    end_offset: int


async def list_offsets(
    client: FlowClient,
    timestamps: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
    timeout_ms: int | None = None,
) -> Answers[OffsetAndTimestamp]:
    """By partition, the first offset whose timestamp is at least this, or the special ones: EARLIEST, LATEST, …

    An offset of -1 means that there is none.
    """
    ListOffsets = messages.request(LIST_OFFSETS)

    async def ask(node_id: int, keys: list[TopicPartition]) -> Answers[OffsetAndTimestamp]:
        topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
        for topic, partition in keys:
            entry = topics.setdefault(topic, ListOffsets.ListOffsetsTopic(name=topic, partitions=[]))
            leader = client.cluster.leader(topic, partition)
            entry.partitions.append(
                ListOffsets.ListOffsetsPartition(
                    partition_index=partition,
                    current_leader_epoch=NO_EPOCH if leader is None else leader.leader_epoch,
                    timestamp=timestamps[topic, partition],
                )
            )
        message = ListOffsets(
            replica_id=CONSUMER,
            isolation_level=int(read_committed),
            topics=list(topics.values()),
            timeout_ms=client.config.request_timeout_ms,
        )
        response = await client.request(node_id, LIST_OFFSETS, message)
        answers: Answers[OffsetAndTimestamp] = {}
        for t in response.topics:
            for p in t.partitions:
                answers[t.name, p.partition_index] = _answer(
                    p.error_code,
                    f"offsets of {t.name}-{p.partition_index}",
                    OffsetAndTimestamp(p.offset, p.timestamp, p.leader_epoch),
                )
        return answers

    return await by_leader(client, timestamps, ask, timeout_ms)


async def offsets_for_leader_epochs(
    client: FlowClient, epochs: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
) -> Answers[EpochEnd]:
    """By partition, where the leader's log of this epoch, or of the largest one before it, ends."""
    Request = messages.request(OFFSET_FOR_LEADER_EPOCH)

    async def ask(node_id: int, keys: list[TopicPartition]) -> Answers[EpochEnd]:
        topics: dict[str, OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = {}
        for topic, partition in keys:
            entry = topics.setdefault(topic, Request.OffsetForLeaderTopic(topic=topic, partitions=[]))
            leader = client.cluster.leader(topic, partition)
            entry.partitions.append(
                Request.OffsetForLeaderPartition(
                    partition=partition,
                    current_leader_epoch=NO_EPOCH if leader is None else leader.leader_epoch,
                    leader_epoch=epochs[topic, partition],
                )
            )
        message = Request(replica_id=CONSUMER, topics=list(topics.values()))
        response = await client.request(node_id, OFFSET_FOR_LEADER_EPOCH, message)
        answers: Answers[EpochEnd] = {}
        for t in response.topics:
            for p in t.partitions:
                answers[t.topic, p.partition] = _answer(
                    p.error_code,
                    f"leader epochs of {t.topic}-{p.partition}",
                    EpochEnd(p.leader_epoch, p.end_offset),
                )
        return answers

    return await by_leader(client, epochs, ask, timeout_ms)


def _answer(code: int, what: str, value: T) -> T | KafkaError:
    return value if code == ErrorCode.NONE else KafkaError(error_code(code), what)


def values(answers: Answers[OffsetAndTimestamp]) -> dict[TopicPartition, OffsetAndTimestamp]:
    """All answers, or the first error among them."""
    found: dict[TopicPartition, OffsetAndTimestamp] = {}
    for key, answer in answers.items():
        if isinstance(answer, KafkaError):
            raise answer
        found[key] = answer
    return found


def all_at(partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
    return dict.fromkeys(partitions, timestamp)
