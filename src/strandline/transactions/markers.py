"""Which markers are to be sent to which leader (TXN-T30 to TXN-T33).

    queue.add(marker)
    for request in queue.take(now, targets): ...
    done, refused = queue.answered(request, codes, now)

Always true: one request per broker is under way, the rest is gathered; a producer id is once in a request, since answers name
nothing else; a partition is asked again, of the leader that it has then, until it has the marker, is refused, or is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from strandline.errors import ErrorCode
from strandline.ids import TopicPartition
from strandline.transactions.metadata import ProducerIdAndEpoch

RETRY_S = 0.1
PARTITIONS_PER_REQUEST_MAX = 2000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EndMarker:
    """The end of one transaction, as its coordinator decided it."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    commit: bool
    transaction_version: int
    coordinator_partition: int
    coordinator_epoch: int
    partitions: frozenset[TopicPartition]


class MarkerTargets(Protocol):
    def exists(self, partition: TopicPartition) -> bool: ...

    def leader(self, partition: TopicPartition) -> int | None:
        """The broker to send to; None while none leads, or its leader is fenced."""
        ...


Entries = dict[EndMarker, list[TopicPartition]]


@dataclass(slots=True)
class MarkerRequest:
    broker_id: int
    entries: Entries = field(default_factory=dict)
    partitions_count: int = 0


class Settled(NamedTuple):
    """What an answer, or the metadata, has settled."""

    done: Entries
    refused: list[EndMarker]
    """A leader knows a newer epoch of the producer or of the coordinator."""


_DONE = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION})
_REFUSED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class MarkerQueue:
    def __init__(self) -> None:
        self._waiting: dict[EndMarker, dict[TopicPartition, float]] = {}
        """Partitions that are to be asked, and not before when."""
        self._stalled: dict[EndMarker, dict[TopicPartition, float]] = {}
        """Partitions without a leader: looked at again when the metadata says more."""
        self._in_flight: dict[int, MarkerRequest] = {}

    def __len__(self) -> int:
        """Partitions that are waited for, for the metric."""
        sent = sum(request.partitions_count for request in self._in_flight.values())
        return sent + sum(map(len, self._waiting.values())) + sum(map(len, self._stalled.values()))

    def leaderless_count(self, targets: MarkerTargets) -> int:
        """Partitions of them that have no leader now."""
        places = (place for marked in (self._waiting, self._stalled) for places in marked.values() for place in places)
        return sum(targets.leader(place) is None for place in places)

    def add(self, marker: EndMarker) -> None:
        self._waiting[marker] = dict.fromkeys(sorted(marker.partitions), 0.0)

    def forget(self, coordinator_partition: int, coordinator_epoch: int) -> None:
        """The markers of exactly this load; never those of a newer one (TXN-T31)."""
        known = {marker for request in self._in_flight.values() for marker in request.entries}.union(
            self._waiting, self._stalled
        )
        for marker in known:
            if _is_of(marker, coordinator_partition, coordinator_epoch):
                self._drop(marker)

    def _drop(self, marker: EndMarker) -> None:
        self._waiting.pop(marker, None)
        self._stalled.pop(marker, None)
        for request in self._in_flight.values():
            request.partitions_count -= len(request.entries.pop(marker, ()))

    def metadata_changed(self, targets: MarkerTargets) -> Entries:
        """Partitions that had no leader may have one; those that are no more are returned: nothing is to be ended there."""
        for marker, partitions in self._stalled.items():
            self._waiting.setdefault(marker, {}).update(partitions)
        self._stalled.clear()
        gone: Entries = {}
        for marker, partitions in tuple(self._waiting.items()):
            found = [partition for partition in partitions if not targets.exists(partition)]
            if found:
                gone[marker] = found
                self._remove(marker, found)
        return gone

    def take(self, now: float, targets: MarkerTargets) -> list[MarkerRequest]:
        """What can be sent now. Each request has to be answered."""
        requests: dict[int, MarkerRequest] = {}
        producers: set[tuple[int, int]] = set()
        stalled: Entries = {}
        for marker, partition in self._due(now):
            broker_id = targets.leader(partition)
            if broker_id is None:
                stalled.setdefault(marker, []).append(partition)
                continue
            if broker_id in self._in_flight:
                continue
            request = requests.setdefault(broker_id, MarkerRequest(broker_id))
            if request.partitions_count >= PARTITIONS_PER_REQUEST_MAX:
                continue
            if marker not in request.entries:
                if (broker_id, marker.producer.producer_id) in producers:
                    continue
                producers.add((broker_id, marker.producer.producer_id))
            request.entries.setdefault(marker, []).append(partition)
            request.partitions_count += 1
        found = [request for request in requests.values() if request.entries]
        for request in found:
            self._in_flight[request.broker_id] = request
            for marker, partitions in request.entries.items():
                self._remove(marker, partitions)
        for marker, partitions in stalled.items():
            self._remove(marker, partitions)
            self._stalled.setdefault(marker, {}).update(dict.fromkeys(partitions, 0.0))
        return found

    def _due(self, now: float) -> Iterator[tuple[EndMarker, TopicPartition]]:
        for marker, partitions in self._waiting.items():
            for partition, not_before in partitions.items():
                if not_before <= now:
                    yield marker, partition

    def _remove(self, marker: EndMarker, partitions: list[TopicPartition]) -> None:
        waiting = self._waiting[marker]
        for partition in partitions:
            del waiting[partition]
        if not waiting:
            del self._waiting[marker]

    def next_s(self, now: float) -> float | None:
        """When something may be tried again that waits for its time; what is due waits for an answer or for metadata."""
        times = (when for partitions in self._waiting.values() for when in partitions.values() if when > now)
        return min(times, default=None)

    def answered(
        self, request: MarkerRequest, codes: Mapping[int, Mapping[TopicPartition, ErrorCode]] | None, now: float
    ) -> Settled:
        """The codes of each producer id's partitions; None if no answer came. What is not settled is tried again."""
        del self._in_flight[request.broker_id]
        settled = Settled({}, [])
        for marker, partitions in request.entries.items():
            of_marker = {} if codes is None else codes.get(marker.producer.producer_id, {})
            found = {partition: of_marker.get(partition, ErrorCode.NETWORK_EXCEPTION) for partition in partitions}
            if not _REFUSED.isdisjoint(found.values()):
                settled.refused.append(marker)
                self._drop(marker)
                continue
            done = [partition for partition, code in found.items() if code in _DONE]
            if done:
                settled.done[marker] = done
            again = {partition: now + RETRY_S for partition, code in found.items() if code not in _DONE}
            if again:
                self._waiting.setdefault(marker, {}).update(again)
        return settled


def _is_of(marker: EndMarker, coordinator_partition: int, coordinator_epoch: int) -> bool:
    return marker.coordinator_partition == coordinator_partition and marker.coordinator_epoch == coordinator_epoch
