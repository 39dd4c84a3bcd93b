"""A batch made from another: with a different codec, or with only some of its records left.

Always true: offsets, sequences, producer and leader epoch stay what they were, so that nobody who counts them can tell.
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.ports import Buffer
from strandline.records import header as layout
from strandline.records.batch import join
from strandline.records.compression import CompressionType, compress
from strandline.records.header import BatchHeader
from strandline.records.record import Record, encode_record


def recompressed(header: BatchHeader, payload: Buffer, codec: CompressionType, level: int | None = None) -> bytearray:
    """The batch of this header and these encoded records under the topic's compression.type."""
    attributes = header.attributes & ~layout.CODEC_MASK | codec
    return join(header._replace(attributes=attributes), compress(codec, payload, level))


def retain(
    header: BatchHeader, records: Sequence[Record], *, delete_horizon_ms: int | None = None, level: int | None = None
) -> bytearray:
    """What compaction leaves of a batch: these of the records that it was decoded to.

    `delete_horizon_ms` is written when the batch has none yet. It takes the place of the base timestamp, and the records
    count from it, so their own timestamps stay what they were. With no record left, the header alone keeps the
    producer's last sequence.
    """
    if not records:
        attributes = header.attributes & ~(layout.CODEC_MASK | layout.DELETE_HORIZON_FLAG)
        return join(header._replace(attributes=attributes, base_timestamp=layout.NO_TIMESTAMP, records_count=0), b"")
    horizon_ms = delete_horizon_ms if header.delete_horizon_ms is None else header.delete_horizon_ms
    base_timestamp = records[0].timestamp if horizon_ms is None else horizon_ms
    payload = b"".join(
        encode_record(
            record.offset - header.base_offset,
            record.timestamp - base_timestamp,
            record.key,
            record.value,
            record.headers,
        )
        for record in records
    )
    left = header._replace(
        attributes=header.attributes if horizon_ms is None else header.attributes | layout.DELETE_HORIZON_FLAG,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        records_count=len(records),
    )
    return join(left, compress(CompressionType.of(header.codec), payload, level))
