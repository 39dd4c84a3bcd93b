"""Sends the ends of transactions to the leaders of their partitions, until each has its marker (TXN-T30 to TXN-T33).

Always true: what is to be sent is decided by the queue (`transactions/markers.py`); a partition that this node leads is written to
without a connection, and settled by itself. Another broker is given more time than it takes for its answer (`MarkerWriter`), so
that one partition that stands still costs the others nothing but that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Final

from strandline.api.transactions.marker_writing import MarkerWriter, WritableMarker
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import TopicPartition
from strandline.metadata.image import MetadataImage
from strandline.node.logger import Logger
from strandline.node.signals import Signal
from strandline.node.tasks import AsyncWork
from strandline.node.transactions.broker_requests import BrokerRequests
from strandline.transactions.markers import EndMarker, MarkerPlace, MarkerQueue, MarkerRequest, Settled
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
        self._queue = MarkerQueue(node_id)
        self._is_due = False
        self._applied = MetadataImage()
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
        self._soon()

    def forget(self, coordinator_partition: int, coordinator_epoch: int) -> None:
        self._queue.forget(coordinator_partition, coordinator_epoch)

    def image_applied(self, image: MetadataImage) -> None:
        """Partitions may have another leader, or be gone."""
        before, self._applied = self._applied, image
        if len(self._queue) and (before.topics is not image.topics or before.brokers is not image.brokers):
            self._queue.metadata_changed()
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
        loop = asyncio.get_running_loop()
        taken = self._queue.take(loop.time(), _ImageTargets(self._image()))
        for marker, partitions in taken.gone.items():
            self._on_marked(marker, partitions)
        for request in taken.requests:
            self._spawn(self._send(request))
        for place in taken.here:
            self._write_here(place)
        if self._queue.has_more:
            self._soon()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        next_s = self._queue.next_s()
        if next_s is not None:
            self._alarm = loop.call_at(next_s, self._soon)

    async def _send(self, request: MarkerRequest) -> None:
        codes: Codes | None = None
        try:
            response = await self._requests.ask(
                request.broker_id, WRITE_TXN_MARKERS, _message(request), self._timeout_s()
            )
            codes = _codes(response)
        except KafkaError as error:
            self._logger.info("markers could not be sent", broker=request.broker_id, error=error.message)
        finally:
            self._answered(request, codes)

    def _write_here(self, place: MarkerPlace) -> None:
        marker = place.marker
        if marker not in self._queue:
            return  # a log dir failed with the one before, which ended coordinators of this node
        writable = WritableMarker(marker.producer, marker.commit, marker.coordinator_epoch, marker.transaction_version)
        self._writer.write(place.partition, writable, partial(self._written, place))

    def _written(self, place: MarkerPlace, code: ErrorCode) -> None:
        self._settle(self._queue.written(place, code, asyncio.get_running_loop().time()))

    def _answered(self, request: MarkerRequest, codes: Codes | None) -> None:
        self._settle(self._queue.answered(request, codes, asyncio.get_running_loop().time()))

    def _settle(self, settled: Settled) -> None:
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
        for marker, code in settled.unforeseen.items():
            self._logger.warning(
                "a marker can't be written, and is tried again",
                transactional_id=marker.transactional_id,
                producer_id=marker.producer.producer_id,
                error=code.name,
            )
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
