"""Sends the ends of transactions to the leaders of their partitions, until each has its marker (TXN-T30 to TXN-T33).

Always true: what is to be sent is decided by the queue (`transactions/markers.py`); a leader that is this node is written to
without a connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from strandline.api.transactions.marker_writing import MarkerWriter, WritableMarker
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import TopicPartition
from strandline.metadata.image import MetadataImage
from strandline.node.logger import Logger
from strandline.node.signals import Signal
from strandline.node.tasks import AsyncWork
from strandline.node.transactions.broker_requests import BrokerRequests
from strandline.transactions.markers import EndMarker, MarkerQueue, MarkerRequest
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

WRITE_TXN_MARKERS: Final = 27
Codes = dict[int, dict[TopicPartition, ErrorCode]]


class MarkerSender:
    def __init__(
        self,
        node_id: int,
        image: Callable[[], MetadataImage],
        requests: BrokerRequests,
        writer: MarkerWriter,
        timeout_s: Callable[[], float],
        spawn: Callable[[AsyncWork[None]], None],
        logger: Logger,
        on_marked: Signal[EndMarker, Collection[TopicPartition]],
        on_refused: Signal[EndMarker],
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._requests = requests
        self._writer = writer
        self._timeout_s = timeout_s
        self._spawn = spawn
        self._logger = logger
        self._on_marked = on_marked
        self._on_refused = on_refused
        self._queue = MarkerQueue()
        self._is_due = False
        self._is_stale = False
        """The metadata has changed since markers were last looked at."""
        self._alarm: asyncio.TimerHandle | None = None
        self._is_closed = False

    def __len__(self) -> int:
        """Partitions whose marker is waited for."""
        return len(self._queue)

    @property
    def leaderless_count(self) -> int:
        """Those of them that no broker leads."""
        return self._queue.leaderless_count(_ImageTargets(self._image()))

    def send(self, marker: EndMarker) -> None:
        self._queue.add(marker)
        # One of its topics may have been deleted before.
        self._is_stale = self._is_stale or not all(map(_ImageTargets(self._image()).exists, marker.partitions))
        self._soon()

    def forget(self, coordinator_partition: int, coordinator_epoch: int) -> None:
        self._queue.forget(coordinator_partition, coordinator_epoch)

    def image_applied(self, image: MetadataImage) -> None:
        """Partitions may have another leader, or be gone."""
        if len(self._queue):
            self._is_stale = True
            self._soon()

    def close(self) -> None:
        self._is_closed = True
        if self._alarm is not None:
            self._alarm.cancel()

    # Sending

    def _soon(self) -> None:
        """At the end of this turn of the loop: what else comes in it goes along."""
        if not self._is_due and not self._is_closed:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._is_due = False
        if self._is_closed:
            return
        targets = _ImageTargets(self._image())
        if self._is_stale:
            self._is_stale = False
            for marker, partitions in self._queue.metadata_changed(targets).items():
                self._on_marked(marker, partitions)
        for request in self._queue.take(asyncio.get_running_loop().time(), targets):
            if request.broker_id == self._node_id:
                self._write_here(request)
            else:
                self._spawn(self._send(request))
        next_s = self._queue.next_s(asyncio.get_running_loop().time())
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if next_s is not None:
            self._alarm = asyncio.get_running_loop().call_at(next_s, self._soon)

    async def _send(self, request: MarkerRequest) -> None:
        try:
            response = await self._requests.ask(
                request.broker_id, WRITE_TXN_MARKERS, _message(request), self._timeout_s()
            )
        except KafkaError as error:
            self._logger.info("markers could not be sent", broker=request.broker_id, error=error.message)
            self._answered(request, None)
        else:
            self._answered(request, _codes(response))

    def _write_here(self, request: MarkerRequest) -> None:
        codes: Codes = {}
        left = request.partitions_count + 1

        def settle() -> None:
            nonlocal left
            left -= 1
            if not left:
                self._answered(request, codes)

        # A log dir that fails in the middle of it ends coordinators of this node, and their markers are forgotten.
        for marker, partitions in tuple(request.entries.items()):
            writable = WritableMarker(
                marker.producer, marker.commit, marker.coordinator_epoch, marker.transaction_version
            )
            for place in partitions:

                def done(
                    code: ErrorCode, producer_id: int = marker.producer.producer_id, place: TopicPartition = place
                ) -> None:
                    codes.setdefault(producer_id, {})[place] = code
                    settle()

                self._writer.write(place, writable, done)
        settle()

    def _answered(self, request: MarkerRequest, codes: Codes | None) -> None:
        settled = self._queue.answered(request, codes, asyncio.get_running_loop().time())
        for marker, partitions in settled.done.items():
            self._on_marked(marker, partitions)
        for marker in settled.refused:
            self._logger.warning(
                "a marker was refused: a newer coordinator or producer ends this transaction",
                transactional_id=marker.transactional_id,
                producer_id=marker.producer.producer_id,
                coordinator_epoch=marker.coordinator_epoch,
            )
            self._on_refused(marker)
        self._soon()


class _ImageTargets:
    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    def exists(self, partition: TopicPartition) -> bool:
        return self._image.partition(*partition) is not None

    def leader(self, partition: TopicPartition) -> int | None:
        state = self._image.partition(*partition)
        if state is None:
            return None
        broker = self._image.brokers.get(state.leader)
        return None if broker is None or broker.fenced else state.leader


def _message(request: MarkerRequest) -> WriteTxnMarkersRequest:
    write: type[WriteTxnMarkersRequest] = messages.request(WRITE_TXN_MARKERS)
    markers = []
    for marker, partitions in request.entries.items():
        topics: dict[str, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        markers.append(
            write.WritableTxnMarker(
                producer_id=marker.producer.producer_id,
                producer_epoch=marker.producer.epoch,
                transaction_result=marker.commit,
                topics=[
                    write.WritableTxnMarkerTopic(name=name, partition_indexes=found) for name, found in topics.items()
                ],
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
        )
    return write(markers=markers)


def _codes(response: WriteTxnMarkersResponse) -> Codes:
    return {
        marker.producer_id: {
            (topic.name, partition.partition_index): error_code(partition.error_code)
            for topic in marker.topics
            for partition in topic.partitions
        }
        for marker in response.markers
    }
