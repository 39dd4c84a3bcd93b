"""Where the leaders' logs start and end, asked with ListOffsets for partitions whose position the leader does not have.

Always true: it is asked as a replica, so that the answer is the log end and not the high watermark; start and end are
both there, or the partition gets an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from strandline.errors import ErrorCode
from strandline.ids import TopicPartition
from strandline.node.fetching.connection import FetchConnection
from strandline.node.fetching.session import Followed
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.list_offsets import ListOffsetsRequest, ListOffsetsResponse

LIST_OFFSETS: Final = 2
LATEST, EARLIEST, EARLIEST_LOCAL = -1, -2, -4
EARLIEST_LOCAL_SINCE = 8

Done = Callable[[Followed, int, int, int], None]
"""Gets an error code, and the leader's log start and end."""


def ask(connection: FetchConnection, node_id: int, partitions: list[Followed], timeout_s: float, on_done: Done) -> None:
    """Two requests, since one may name a partition only once. If the connection ends, `on_done` is not called."""
    assert connection.versions is not None, "the connection is open"
    version = connection.versions.pick(LIST_OFFSETS)
    starts: dict[TopicPartition, tuple[int, int]] = {}

    def take_starts(reply: ListOffsetsResponse) -> None:
        starts.update(_offsets(reply))

    def take_ends(reply: ListOffsetsResponse) -> None:
        ends = _offsets(reply)
        for followed in partitions:
            place = (followed.partition.topic, followed.partition.index)
            start_code, start = starts.get(place, (ErrorCode.UNKNOWN_SERVER_ERROR, -1))
            end_code, end = ends.get(place, (ErrorCode.UNKNOWN_SERVER_ERROR, -1))
            on_done(followed, start_code or end_code, start, end)

    earliest = EARLIEST_LOCAL if version >= EARLIEST_LOCAL_SINCE else EARLIEST
    connection.ask(LIST_OFFSETS, version, _question(node_id, partitions, earliest), timeout_s, take_starts)
    connection.ask(LIST_OFFSETS, version, _question(node_id, partitions, LATEST), timeout_s, take_ends)


def _question(node_id: int, partitions: list[Followed], timestamp: int) -> ListOffsetsRequest:
    request = messages.request(LIST_OFFSETS)
    topics: dict[str, list[ListOffsetsRequest.ListOffsetsPartition]] = {}
    for followed in partitions:
        partition = followed.partition
        topics.setdefault(partition.topic, []).append(
            request.ListOffsetsPartition(
                partition_index=partition.index, current_leader_epoch=partition.leader_epoch, timestamp=timestamp
            )
        )
    return request(
        replica_id=node_id,
        topics=[request.ListOffsetsTopic(name=name, partitions=wanted) for name, wanted in topics.items()],
    )


def _offsets(reply: ListOffsetsResponse) -> dict[TopicPartition, tuple[int, int]]:
    return {
        (topic.name, answer.partition_index): (answer.error_code, answer.offset)
        for topic in reply.topics
        for answer in topic.partitions
    }
