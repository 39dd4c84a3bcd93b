"""Which markers are to be sent to which leader (TXN-T30 to TXN-T33).

    queue.add(marker)
    requests, here, gone = queue.take(now, targets)
    settled = queue.answered(request, codes, now)

Always true: one request per other broker is under way, the rest is gathered by leader; what is led here is written partition by
partition, and none waits for another. A producer id is once in a request, since answers name nothing else; a partition is asked
again, of the leader that it has then, until it has the marker, is refused, or is deleted. What is gathered costs nothing until it
is sent, or until the metadata says more of topics or brokers, and then no turn takes all of it.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from strandline.errors import ErrorCode
from strandline.ids import TopicPartition
from strandline.transactions.metadata import ProducerIdAndEpoch

RETRY_S, RETRY_MAX_S, DOUBLED_MAX = 0.1, 1.0, 8
"""Before a partition is asked again, the first time and at most; it doubles."""
PARTITIONS_PER_REQUEST_MAX = 2000
ROUTED_PER_TURN_MAX, WRITTEN_PER_TURN_MAX = 5000, 100
"""Partitions whose leader is looked up, and those that are written here, before others get their turn."""


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


class MarkerPlace(NamedTuple):
    """A partition that a marker is for, and how often it was asked in vain."""

    marker: EndMarker
    partition: TopicPartition
    tries: int = 0


Partitions = dict[EndMarker, list[TopicPartition]]


@dataclass(slots=True)
class MarkerRequest:
    broker_id: int
    entries: dict[EndMarker, dict[TopicPartition, int]] = field(default_factory=dict)
    """The partitions of each, and how often they were asked in vain."""
    partitions_count: int = 0


class TakenMarkers(NamedTuple):
    requests: list[MarkerRequest]
    """To other brokers. Each has to be answered."""
    here: list[MarkerPlace]
    """To be written on this node. Each has to be answered."""
    gone: Partitions
    """Partitions that are no more: nothing is to be ended there."""


class Settled(NamedTuple):
    """What an answer has settled."""

    done: Partitions
    refused: list[EndMarker]
    """A leader knows a newer epoch of the producer or of the coordinator."""
    unforeseen: dict[EndMarker, ErrorCode]
    """Answered for the first time with an error that no leader should have; it is tried again."""


_DONE = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION})
_REFUSED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
_PASSING = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class MarkerQueue:
    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._left: dict[EndMarker, int] = {}
        """How many partitions of each marker are not settled. What is not in here was refused or forgotten, whoever names it."""
        self._count = 0
        self._unrouted: deque[MarkerPlace] = deque()
        """Whose leader is to be looked up."""
        self._ready: dict[int, deque[MarkerPlace]] = {}
        """By leader, as the metadata said it last."""
        self._stalled: list[MarkerPlace] = []
        """Without a leader: looked at again when the metadata says more."""
        self._later: list[tuple[float, int, MarkerPlace]] = []
        """A heap: when they are to be asked again."""
        self._numbers = itertools.count()
        self._in_flight: dict[int, MarkerRequest] = {}

    def __len__(self) -> int:
        """Partitions that are waited for, for the metric."""
        return self._count

    def __contains__(self, marker: EndMarker) -> bool:
        """Some of it is still to be written."""
        return marker in self._left

    def leaderless_count(self, targets: MarkerTargets) -> int:
        """Partitions of them that have no leader now."""
        return sum(place.marker in self._left and targets.leader(place.partition) is None for place in self._unsent())

    def _unsent(self) -> Iterator[MarkerPlace]:
        yield from itertools.chain(self._unrouted, self._stalled, *self._ready.values())
        yield from (place for _, _, place in self._later)

    def add(self, marker: EndMarker) -> None:
        self._left[marker] = len(marker.partitions)
        self._count += len(marker.partitions)
        self._unrouted += [MarkerPlace(marker, partition) for partition in sorted(marker.partitions)]

    def forget(self, coordinator_partition: int, coordinator_epoch: int) -> None:
        """The markers of exactly this load; never those of a newer one (TXN-T31)."""
        for marker in tuple(self._left):
            if _is_of(marker, coordinator_partition, coordinator_epoch):
                self._drop(marker)

    def _drop(self, marker: EndMarker) -> None:
        self._count -= self._left.pop(marker)

    def metadata_changed(self) -> None:
        """Topics or brokers are other ones: partitions may have another leader, or their first, or be gone."""
        self._unrouted += itertools.chain(self._stalled, *self._ready.values())
        self._stalled = []
        self._ready.clear()

    # Sending

    def take(self, now: float, targets: MarkerTargets) -> TakenMarkers:
        """What can be sent now."""
        while self._later and self._later[0][0] <= now:
            self._unrouted.append(heapq.heappop(self._later)[2])
        taken = TakenMarkers([], [], self._route(targets))
        for broker_id in tuple(self._ready):
            if broker_id == self._node_id:
                taken.here.extend(self._to_be_written())
            elif broker_id not in self._in_flight and (request := self._request(broker_id)).entries:
                self._in_flight[broker_id] = request
                taken.requests.append(request)
            if not self._ready[broker_id]:
                del self._ready[broker_id]
        return taken

    def _route(self, targets: MarkerTargets) -> Partitions:
        gone: Partitions = {}
        for _ in range(min(len(self._unrouted), ROUTED_PER_TURN_MAX)):
            place = self._unrouted.popleft()
            marker, partition, _ = place
            if marker not in self._left:
                continue
            leader = targets.leader(partition)
            if leader is not None:
                self._ready.setdefault(leader, deque()).append(place)
            elif targets.exists(partition):
                self._stalled.append(place)
            else:
                gone.setdefault(marker, []).append(partition)
        for marker, partitions in gone.items():
            self._settled(marker, len(partitions))
        return gone

    def _to_be_written(self) -> Iterator[MarkerPlace]:
        waiting = self._ready[self._node_id]
        for _ in range(min(len(waiting), WRITTEN_PER_TURN_MAX)):
            place = waiting.popleft()
            if place.marker in self._left:
                yield place

    @property
    def has_more(self) -> bool:
        """There is more to be looked up, or written on this node, than one turn has time for."""
        return bool(self._unrouted) or self._node_id in self._ready

    def _request(self, broker_id: int) -> MarkerRequest:
        request, waiting = MarkerRequest(broker_id), self._ready[broker_id]
        by_producer_id: dict[int, EndMarker] = {}
        passed_over: list[MarkerPlace] = []
        while waiting and request.partitions_count < PARTITIONS_PER_REQUEST_MAX:
            place = waiting.popleft()
            marker, partition, tries = place
            if marker not in self._left:
                continue
            if by_producer_id.setdefault(marker.producer.producer_id, marker) is not marker:
                passed_over.append(place)
                continue
            request.entries.setdefault(marker, {})[partition] = tries
            request.partitions_count += 1
        waiting.extendleft(reversed(passed_over))
        return request

    def next_s(self) -> float | None:
        """When something may be tried again that waits for its time; the rest waits for an answer or for metadata."""
        return self._later[0][0] if self._later else None

    # Answers

    def answered(
        self, request: MarkerRequest, codes: Mapping[int, Mapping[TopicPartition, ErrorCode]] | None, now: float
    ) -> Settled:
        """The codes of each producer id's partitions; None if no answer came. What is not settled is tried again."""
        del self._in_flight[request.broker_id]
        settled = Settled({}, [], {})
        for marker, partitions in request.entries.items():
            of_marker = {} if codes is None else codes.get(marker.producer.producer_id, {})
            found = {
                MarkerPlace(marker, partition, tries): of_marker.get(partition, ErrorCode.NETWORK_EXCEPTION)
                for partition, tries in partitions.items()
            }
            self._take_answer(marker, found, now, settled)
        return settled

    def written(self, place: MarkerPlace, code: ErrorCode, now: float) -> Settled:
        """The answer of a partition of this node."""
        settled = Settled({}, [], {})
        self._take_answer(place.marker, {place: code}, now, settled)
        return settled

    def _take_answer(
        self, marker: EndMarker, codes: Mapping[MarkerPlace, ErrorCode], now: float, settled: Settled
    ) -> None:
        if marker not in self._left:
            return
        done = [place.partition for place, code in codes.items() if code in _DONE]
        if done:
            settled.done[marker] = done
            self._settled(marker, len(done))
        if not _REFUSED.isdisjoint(codes.values()):
            settled.refused.append(marker)
            self._drop(marker)
            return
        for place, code in codes.items():
            if code in _DONE:
                continue
            if code not in _PASSING and not place.tries:
                settled.unforeseen[marker] = code
            wait_s = min(RETRY_S * 2 ** min(place.tries, DOUBLED_MAX), RETRY_MAX_S)
            again = place._replace(tries=place.tries + 1)
            heapq.heappush(self._later, (now + wait_s, next(self._numbers), again))

    def _settled(self, marker: EndMarker, count: int) -> None:
        self._count -= count
        self._left[marker] -= count
        if not self._left[marker]:
            del self._left[marker]


def _is_of(marker: EndMarker, coordinator_partition: int, coordinator_epoch: int) -> bool:
    return marker.coordinator_partition == coordinator_partition and marker.coordinator_epoch == coordinator_epoch
