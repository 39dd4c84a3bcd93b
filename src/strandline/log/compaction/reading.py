"""The batches of a closed segment, one after the other, for somebody who reads all of it once.

Always true: offsets rise and stay within the segment, or it is CorruptBatch; a batch's checksum counts only after `check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from crc32c import crc32c

from strandline.log.damage import header_problem
from strandline.log.errors import CorruptBatch
from strandline.log.segment import Segment
from strandline.ports import Disk
from strandline.records.batch import payload_of
from strandline.records.compression import DECOMPRESSED_BYTES_MAX, CompressionType
from strandline.records.header import ATTRIBUTES_AT, HEADER, LOG_OVERHEAD, MAGIC, RECORDS_AT, BatchHeader

CHUNK_BYTES = 4 * 1024 * 1024
"""Read at once; a larger batch is read whole."""


class SourceSegment(NamedTuple):
    """A closed segment that a job reads."""

    base_offset: int
    next_offset: int
    """One past its last batch."""
    end_offset: int
    """Where the next segment begins."""
    size: int
    offset_index_bytes: int
    time_index_bytes: int


class SourceReader:
    def __init__(self, disk: Disk, pace: Callable[[int], None], directory: str, source: SourceSegment) -> None:
        self._disk = disk
        self._pace = pace
        self._directory = directory
        self._source = source
        self.position = 0
        """Where the batch ends that was read last."""

    def batches(self) -> Iterator[tuple[bytes, int, BatchHeader]]:
        """Each batch as bytes that hold it, where it begins in them, and its header."""
        source = self._source
        segment = self._open()
        try:
            expected_offset = source.base_offset
            while self.position < source.size:
                data, at = self._read(segment, CHUNK_BYTES), 0
                end = len(data)
                while end - at >= RECORDS_AT:
                    header = tuple.__new__(BatchHeader, HEADER.unpack_from(data, at))
                    left = source.size - self.position
                    # What `header_problem` says, without the call: most batches have none.
                    if (
                        header[3] != MAGIC
                        or not RECORDS_AT - LOG_OVERHEAD <= header[1] <= left - LOG_OVERHEAD
                        or not expected_offset <= header[0] <= header[0] + header[6] < source.next_offset
                    ):
                        problem = header_problem(header, left, expected_offset, source.next_offset)
                        raise self._damage(segment, self.position, str(problem))
                    size = header.size_bytes
                    if end - at < size:
                        if at:
                            break
                        data = self._read(segment, size)
                        end = len(data)
                    self.position += size
                    yield data, at, header
                    at += size
                    expected_offset = header.next_offset
                if not at:
                    raise self._damage(segment, self.position, f"{end} bytes are too few for a batch")
        finally:
            segment.close()

    def check(self, data: bytes, at: int, header: BatchHeader) -> None:
        """CorruptBatch unless the batch that was read last carries its checksum."""
        with memoryview(data) as view:
            if crc32c(view[at + ATTRIBUTES_AT : at + header.size_bytes]) == header.crc:
                return
        segment = self._open()
        try:
            position = self.position - header.size_bytes
            raise self._damage(segment, position, f"the batch at offset {header.base_offset} fails its checksum")
        finally:
            segment.close()

    def _open(self) -> Segment:
        return Segment(
            self._disk,
            self._directory,
            self._source.base_offset,
            index_interval_bytes=0,
            index_bytes_max=0,
            created_ms=0,
            may_have_gaps=True,
            create=False,  # its log may have been cut meanwhile: what is gone must not be there again, empty
        )

    def _read(self, segment: Segment, size: int) -> bytes:
        data = segment.file.read_blocking(self.position, min(size, self._source.size - self.position))
        self._pace(len(data))
        return data

    def _damage(self, segment: Segment, position: int, problem: str) -> CorruptBatch:
        return segment.damage_at(position, problem, limit_offset=self._source.next_offset, blocking=True)


def records_of(data: bytes, at: int, header: BatchHeader) -> tuple[bytes, int, int]:
    """Bytes with the encoded records of the batch at `at`, where these begin, and where they end."""
    if header.codec == CompressionType.NONE:
        return data, at + RECORDS_AT, at + header.size_bytes
    with memoryview(data) as view:
        payload = bytes(payload_of(header, view[at : at + header.size_bytes], DECOMPRESSED_BYTES_MAX))
    return payload, 0, len(payload)
