"""Markers written into the partitions of this node: for WriteTxnMarkers, and for the coordinator that is here (TXN-T35).

Always true: each partition gets its answer once, when the marker is below the high watermark, or before the coordinator that
waits for the answers of many has given up; in `__consumer_offsets` it goes
through the group coordinator, in the order of what that writes, and its offsets are visible by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from strandline.api.access.hosted_partitions import HostedPartitions
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.ports import Clock

CONSUMER_OFFSETS = "__consumer_offsets"
Done = Callable[[ErrorCode], None]


class WritableMarker(NamedTuple):
    producer: tuple[int, int]
    """Producer id and epoch."""
    commit: bool
    coordinator_epoch: int
    transaction_version: int


class GroupMarkers(Protocol):
    """The group coordinator, as far as it writes markers."""

    def write_marker(
        self,
        partition_index: int,
        producer: tuple[int, int],
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        done: Done,
    ) -> None: ...


_IN_TERMS_OF_A_LOG = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


class MarkerWriter:
    def __init__(
        self, hosted: HostedPartitions, groups: GroupMarkers, clock: Clock, timeout_s: Callable[[], float]
    ) -> None:
        self._hosted = hosted
        self._groups = groups
        self._clock = clock
        self._timeout_s = timeout_s

    def write(self, place: TopicPartition, marker: WritableMarker, done: Done) -> None:
        """Write a marker, and call `done` once it is committed or can't be, at the latest after half of `request.timeout.ms`."""
        answer = _Once(done)
        topic, index = place
        if topic == CONSUMER_OFFSETS:
            self._groups.write_marker(
                index,
                marker.producer,
                marker.commit,
                marker.coordinator_epoch,
                marker.transaction_version,
                lambda code: answer(_IN_TERMS_OF_A_LOG.get(code, code)),
            )
        else:
            self._append(place, marker, answer)
        if not answer.is_given:
            # Whoever sent it began to wait earlier, and for all of it: what is committed by then has to reach it.
            answer.expire_after(self._timeout_s() / 2)

    def _append(self, place: TopicPartition, marker: WritableMarker, answer: _Once) -> None:
        partition = self._hosted.by_name.get(place)
        if partition is None:
            failed = place in self._hosted.unopened
            answer(ErrorCode.KAFKA_STORAGE_ERROR if failed else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        try:
            end_offset = partition.append_marker(
                marker.producer,
                marker.commit,
                marker.coordinator_epoch,
                self._clock.wall_ms(),
                transaction_version=marker.transaction_version,
            )
        except KafkaError as error:
            answer(error.code)
        except OSError as error:
            self._hosted.storage_failed(partition, error)
            answer(ErrorCode.KAFKA_STORAGE_ERROR)
        else:
            partition.when_committed(end_offset, answer, lambda: answer.is_given)


class _Once:
    """The answer for one marker: the first one counts."""

    __slots__ = ("_done", "_timer", "is_given")

    def __init__(self, done: Done) -> None:
        self._done = done
        self._timer: asyncio.TimerHandle | None = None
        self.is_given = False

    def __call__(self, code: ErrorCode) -> None:
        if self.is_given:
            return
        self.is_given = True
        if self._timer is not None:
            self._timer.cancel()
        # With too few replicas in sync it is committed nevertheless: the high watermark has it.
        self._done(ErrorCode.NONE if code is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND else code)

    def expire_after(self, timeout_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(timeout_s, self, ErrorCode.REQUEST_TIMED_OUT)
