"""What a batch from a producer must be before it may enter a log.

Always true: the header is checked on every batch, its records are opened only where a rule needs them (a compacted topic, a
topic with a codec of its own). Order and codes are Kafka's; `docs/apis.md` states where we look less closely.
"""

from __future__ import annotations

from typing import NamedTuple

import crc32c

from strandline.config.topic_config import TopicConfig
from strandline.errors import ErrorCode, KafkaError
from strandline.records.compression import DECOMPRESSED_BYTES_MAX, CompressionType
from strandline.records.header import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    RECORDS_AT,
    TRANSACTIONAL_FLAG,
    stamp_append_time,
)
from strandline.records.rewrite import recompress
from strandline.records.validate import validate_records

_NEVER = 2**63 - 1
_CODEC_MAX = int(CompressionType.ZSTD)
DECOMPRESSED_ANYWAY_BYTES = 16 * 1024 * 1024
DECOMPRESSED_RATIO_MAX = 1024
"""A batch may decompress to this many times its size beyond the bytes that any may: a few bytes can't claim all our memory."""


class Valid(NamedTuple):
    """A batch that may be appended, and what the log needs to know of it."""

    batch: bytearray | memoryview
    last_offset_delta: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    append_time: int
    """-1 unless the broker stamped the batch with its own time."""


def validate(batch: memoryview, config: TopicConfig, now_ms: int) -> Valid:
    """Check a client's batch against the topic's rules; KafkaError says which one it breaks."""
    size = len(batch)
    if not size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "exactly one record batch per partition is needed, none came")
    if size < RECORDS_AT:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{size} bytes are too few for a record batch")
    (
        base_offset,
        length,
        _leader_epoch,
        magic,
        checksum,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = HEADER.unpack_from(batch)
    if magic != MAGIC:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"record batches must have magic 2, this one has {magic}")
    if length + LOG_OVERHEAD != size:
        if RECORDS_AT <= length + LOG_OVERHEAD < size:
            raise KafkaError(ErrorCode.INVALID_RECORD, "exactly one record batch per partition is allowed")
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch says it has {length + LOG_OVERHEAD} bytes, {size} came")
    if base_offset:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a produced batch starts at offset 0, this one at {base_offset}")
    if size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"the batch has {size} bytes, max.message.bytes is {config.max_message_bytes}"
        )
    if crc32c.crc32c(batch[ATTRIBUTES_AT:]) != checksum:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the batch fails its checksum")
    if count <= 0 or count != last_offset_delta + 1:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"the batch holds {count} records for {last_offset_delta + 1} offsets"
        )
    if attributes & CONTROL_FLAG:
        raise KafkaError(ErrorCode.INVALID_RECORD, "clients are not allowed to write control records")
    if producer_id >= 0 and (base_sequence < 0 or producer_epoch < 0):
        raise KafkaError(ErrorCode.INVALID_RECORD, f"producer {producer_id} sent sequence {base_sequence}")
    codec = attributes & CODEC_MASK
    if codec > _CODEC_MAX:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"there is no compression codec {codec}")
    if size > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"the batch has {size} bytes, a segment may have {config.segment_bytes}"
        )

    checked: bytearray | memoryview = batch
    if config.compact or config.compression_type != "producer":
        checked = _open(batch, codec, config)
    append_time = -1
    if config.log_append_time:
        append_time = max_timestamp = now_ms
        stamp_append_time(checked, now_ms)
    else:
        after, before = config.message_timestamp_after_max_ms, config.message_timestamp_before_max_ms
        if max_timestamp - now_ms > after or (before != _NEVER and 0 <= base_timestamp < now_ms - before):
            raise KafkaError(
                ErrorCode.INVALID_TIMESTAMP,
                f"timestamps {base_timestamp} to {max_timestamp} are outside {before} ms before to {after} ms after {now_ms}",
            )
    # What `Valid(...)` does, at a third of its price: every produced batch comes through here.
    return tuple.__new__(
        Valid,
        (
            checked,
            last_offset_delta,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            attributes & TRANSACTIONAL_FLAG != 0,
            append_time,
        ),
    )


def _open(batch: memoryview, codec: int, config: TopicConfig) -> bytearray | memoryview:
    """Look at the records, for topics whose rules ask for it."""
    bytes_max = min(DECOMPRESSED_BYTES_MAX, DECOMPRESSED_ANYWAY_BYTES + DECOMPRESSED_RATIO_MAX * len(batch))
    wanted = CompressionType(codec) if config.compression_type == "producer" else _codec(config.compression_type)
    if config.compact or wanted != codec:
        validate_records(batch, require_keys=config.compact, max_decompressed_bytes=bytes_max)
    if wanted != codec:
        recoded = recompress(batch, wanted, _level(wanted, config), max_bytes=bytes_max)
        if len(recoded) > config.max_message_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"recompressed with {config.compression_type} the batch has {len(recoded)} bytes, "
                f"max.message.bytes is {config.max_message_bytes}",
            )
        return recoded
    return batch


def _codec(compression_type: str) -> CompressionType:
    return CompressionType.NONE if compression_type == "uncompressed" else CompressionType.parse(compression_type)


def _level(codec: CompressionType, config: TopicConfig) -> int | None:
    levels = {
        CompressionType.GZIP: config.compression_gzip_level,
        CompressionType.LZ4: config.compression_lz4_level,
        CompressionType.ZSTD: config.compression_zstd_level,
    }
    return levels.get(codec)
