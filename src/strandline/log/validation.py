"""What a batch from a producer must be before it may enter a log.

Always true: header, checksum and every record (`record_checks`) of every batch are checked before anything is written. Order and
codes are Kafka's; `docs/apis.md` states where we are stricter.
"""

from __future__ import annotations

from typing import NamedTuple

from crc32c import crc32c

from strandline.config.topic_config import TopicConfig
from strandline.errors import ErrorCode, KafkaError
from strandline.log.record_checks import CheckedRecords, RecordWork, check_payload, check_records
from strandline.records.compression import CompressionType
from strandline.records.header import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    RECORDS_AT,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    stamp_append_time,
    stamp_create_time,
)

_OF_PRODUCERS = CONTROL_FLAG | TRANSACTIONAL_FLAG
_CODEC_MAX = int(CompressionType.ZSTD)
_read_fields = HEADER.unpack_from


class ValidBatch(NamedTuple):
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


def validate(
    batch: memoryview,
    config: TopicConfig,
    now_ms: int,
    work: RecordWork | None = None,
    checked: CheckedRecords | None = None,
) -> ValidBatch:
    """Check a client's batch against the topic's rules; KafkaError says which one it breaks.

    `work` is what its request may still cost, if it has several batches. RecordsBesideLoop: `check_beside` must see the records
    first, and this again what it returned, as `checked`. That counts for nothing once the topic has another configuration.
    """
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
        _base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = fields = _read_fields(batch)
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
    if crc32c(batch[ATTRIBUTES_AT:]) != checksum:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the batch fails its checksum")
    if count <= 0 or count != last_offset_delta + 1:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"the batch holds {count} records for {last_offset_delta + 1} offsets"
        )
    if attributes & _OF_PRODUCERS:
        if attributes & CONTROL_FLAG:
            raise KafkaError(ErrorCode.INVALID_RECORD, "clients are not allowed to write control records")
        if producer_id < 0:
            raise KafkaError(ErrorCode.INVALID_RECORD, "a batch of a transaction has no producer id")
    if producer_id >= 0 and (base_sequence < 0 or producer_epoch < 0):
        raise KafkaError(ErrorCode.INVALID_RECORD, f"producer {producer_id} sent sequence {base_sequence}")
    codec = attributes & CODEC_MASK
    if codec > _CODEC_MAX:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"there is no compression codec {codec}")
    if checked is not None and (checked.config is config or checked.config == config):
        recoded, own_max_timestamp, _ = checked
    elif codec:
        recoded, own_max_timestamp = check_records(batch, fields, config, now_ms, work)
    else:
        recoded, own_max_timestamp = check_payload(batch, RECORDS_AT, fields, config, now_ms, work, True)
    data: bytearray | memoryview = batch
    if recoded is not None:
        data, size = recoded, len(recoded)
    if size > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"the batch has {size} bytes, a segment may have {config.segment_bytes}"
        )
    append_time = -1
    if config.log_append_time:
        append_time = max_timestamp = now_ms
        stamp_append_time(data, now_ms)
    elif max_timestamp != own_max_timestamp or attributes & TIMESTAMP_TYPE_FLAG:
        max_timestamp = own_max_timestamp
        stamp_create_time(data, max_timestamp)
    # What `ValidBatch(...)` does, at a third of its price: every produced batch comes through here.
    return tuple.__new__(
        ValidBatch,
        (
            data,
            last_offset_delta,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            attributes & TRANSACTIONAL_FLAG != 0,
            append_time,
        ),
    )
