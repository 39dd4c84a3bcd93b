"""What a Fetch brought for one partition, opened batch by batch as it is consumed.

A fetch may begin inside a batch and end inside another: records before the position are passed over, and an incomplete
batch at the end is left for the next fetch. Control batches are never shown, nor, to a read_committed reader, those of
aborted transactions.

Always true: offsets only grow, and a batch is opened only after its CRC was found right (unless check_crcs is off).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from strandline.ports import Buffer
from strandline.records.aborted import AbortedTransactions
from strandline.records.batch import decode
from strandline.records.errors import CorruptRecord
from strandline.records.header import BatchHeader, ensure_valid, iterate
from strandline.records.record import Record


class ConsumerRecord(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    leader_epoch: int
    timestamp_type: int
    """0 is CreateTime, 1 is LogAppendTime."""


class CompletedFetch:
    """Bytes of one partition that were fetched from `offset` on."""

    __slots__ = (
        "_aborted",
        "_batches",
        "_check_crcs",
        "_decompressed_bytes_max",
        "_header",
        "_records",
        "_view",
        "error",
        "last_epoch",
        "next_offset",
        "offset",
        "partition",
        "size_bytes",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        data: Buffer,
        aborted: Iterable[tuple[int, int]] | None,
        *,
        check_crcs: bool,
        decompressed_bytes_max: int,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        """The position: the next record to show is at this offset or later."""
        self.error: CorruptRecord | None = None
        """What is wrong with the batch at the position; everything before it was taken."""
        self.size_bytes = len(data)
        self.last_epoch = -1
        """Leader epoch of the last complete batch."""
        self.next_offset = offset
        """Where the next fetch goes on: after the last complete batch."""
        self._view = memoryview(data)
        self._aborted = None if aborted is None else AbortedTransactions(aborted, decompressed_bytes_max)
        self._check_crcs = check_crcs
        self._decompressed_bytes_max = decompressed_bytes_max
        self._header: BatchHeader | None = None
        self._records: Iterator[Record] = iter(())
        headers = list(iterate(data))
        if headers:
            last = headers[-1][1]
            self.next_offset = max(offset, last.next_offset)
            self.last_epoch = last.partition_leader_epoch
        self._batches = iter(headers)

    def take(self, records_max: int) -> list[ConsumerRecord]:
        """Up to so many records; fewer only when this was the last of them, or an error is next."""
        taken: list[ConsumerRecord] = []
        try:
            while self.error is None and len(taken) < records_max:
                if self._header is None and not self._open_next():
                    break
                self._take_from_batch(taken, records_max)
        except CorruptRecord as error:
            self.error = error
            if taken:
                self.offset = max(self.offset, taken[-1].offset + 1)
        return taken

    @property
    def is_empty(self) -> bool:
        """Everything was taken. Only after a take that came back short."""
        return self.error is None and self._header is None and self.offset >= self.next_offset

    def _take_from_batch(self, taken: list[ConsumerRecord], records_max: int) -> None:
        header = self._header
        assert header is not None
        topic, partition, position, make = self.topic, self.partition, self.offset, tuple.__new__
        epoch, timestamp_type = header.partition_leader_epoch, int(header.is_log_append_time)
        left = records_max - len(taken)
        for offset, timestamp, key, value, headers in self._records:
            if offset < position:
                continue
            taken.append(
                make(
                    ConsumerRecord,
                    (topic, partition, offset, timestamp, key, value, headers, epoch, timestamp_type),
                )
            )
            left -= 1
            if not left:
                self.offset = offset + 1
                return
        self._close(header)

    def _close(self, header: BatchHeader) -> None:
        # Compaction may have taken the records at the end of the batch: the position passes them all the same.
        self._header, self._records = None, iter(())
        self.offset = max(self.offset, header.next_offset)

    def _open_next(self) -> bool:
        for position, header in self._batches:
            batch = self._view[position : position + header.size_bytes]
            if self._check_crcs:
                ensure_valid(batch)  # before anything that it covers is believed: a flipped bit could hide the batch
            if header.next_offset <= self.offset:
                continue
            if self._is_hidden(header, batch):
                self._close(header)
                continue
            self._header, self._records = header, self._decode(batch)
            return True
        return False

    def _decode(self, batch: memoryview) -> Iterator[Record]:
        return decode(batch, max_bytes=self._decompressed_bytes_max, check_crc=False)

    def _is_hidden(self, header: BatchHeader, batch: memoryview) -> bool:
        is_aborted = self._aborted is not None and self._aborted.hold(header, batch)
        return is_aborted or header.is_control
