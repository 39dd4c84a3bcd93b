"""The records of a produced batch: opened, walked, checked against the topic's rules, recompressed if the topic has its own codec.

A small batch is checked on the event loop. What would hold the loop up is checked beside it by the same function: RecordsBesideLoop
says so, and the request then copies the batch, has `check_beside` run elsewhere, and appends with what it found (SEC-L8).

Always true: every produced batch is walked before it is written (SEC-L9); what one request decompresses has a bound, and on the
loop it decompresses at most `LOOP_BYTES_MAX`, walks few enough records and recompresses little. So has the number of records that
it is named as being to blame, and of those that are looked at for that.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline.config.topic_config import TopicConfig
from strandline.errors import ErrorCode, KafkaError
from strandline.log.errors import RecordsBesideLoop
from strandline.ports import Buffer
from strandline.records import walk
from strandline.records.blame import Offences, RecordRules, blame
from strandline.records.compression import CompressionType, decompress, give_back
from strandline.records.errors import InvalidRecord
from strandline.records.header import (
    CODEC_MASK,
    HEADER,
    NO_TIMESTAMP,
    RECORDS_AT,
    TIMESTAMP_TYPE_FLAG,
    BatchHeader,
)
from strandline.records.rewrite import recompressed

REQUEST_BYTES_MAX: Final = 256 * 1024 * 1024
"""What the batches of one request may decompress to, all together."""
LOOP_BYTES_MAX: Final = 1024 * 1024
"""And so much of it on the event loop: some milliseconds."""
RECOMPRESSION_COST: Final = 16
"""Compressing takes so many times as long as decompressing, at the slowest level of the slowest codec."""
LEVEL_BYTES_MAX: Final = 16 * 1024 * 1024
"""More than this is recompressed at the codec's default level, whatever the topic's: zstd's highest takes a gigabyte and twenty
seconds for what a request may bring. No honest batch is so large."""
ERRORS_MAX: Final = 1000
"""So many records of one request are named in its answer: it may have millions to blame, and each takes some fifty bytes."""
BLAMED_MAX: Final = 200_000
BLAMED_ON_LOOP_MAX: Final = 2_000
"""So many are looked at to find them, one by one in Python, however they are walked; and so many of them on the loop."""
DECOMPRESSED_ANYWAY_BYTES: Final = 16 * 1024 * 1024
DECOMPRESSED_RATIO_MAX: Final = 1024
"""A batch may decompress to this many times its size beyond the bytes that any may: a few bytes can't claim all our memory."""
NEVER: Final = 2**63 - 1
_FIELDS: Final = BatchHeader._fields
ATTRIBUTES, BASE_TIMESTAMP, RECORDS_COUNT = map(_FIELDS.index, ("attributes", "base_timestamp", "records_count"))
"""Where they stand in a header: to make a BatchHeader of every batch would cost more than its walk."""


class RecordWork:
    """What is left of the work that the records of one request may cause."""

    __slots__ = (
        "blamed_left",
        "bytes_left",
        "errors_left",
        "loop_blamed_left",
        "loop_bytes_left",
        "loop_records_left",
    )

    def __init__(self) -> None:
        self.bytes_left = REQUEST_BYTES_MAX
        self.blamed_left = BLAMED_MAX
        self.errors_left = ERRORS_MAX
        self.loop_bytes_left = LOOP_BYTES_MAX
        self.loop_records_left = walk.in_use.records_on_loop_max
        self.loop_blamed_left = BLAMED_ON_LOOP_MAX

    def leave_loop(self) -> RecordsBesideLoop:
        """The rest of the request is not tried on the loop either."""
        self.loop_bytes_left = self.loop_records_left = 0
        return RecordsBesideLoop()


Checked = tuple[bytearray | None, int]
"""Of a batch whose records may be written: itself under the topic's codec, if its producer used another, and the greatest timestamp
of its records. A plain tuple: every produced batch makes one."""


class CheckedRecords(NamedTuple):
    """What was found beside the loop."""

    batch: bytearray | None
    max_timestamp: int
    config: TopicConfig
    """Under which it may be written. It may be altered while the batch is checked, and its topic replaced by another."""


def check_beside(batch: Buffer, config: TopicConfig, now_ms: int, work: RecordWork) -> CheckedRecords:
    """Where blocking is allowed. The batch must stay as it is meanwhile, and its header must have been checked."""
    return CheckedRecords(*check_records(batch, HEADER.unpack_from(batch), config, now_ms, work, False), config)


def check_records(
    batch: Buffer,
    fields: tuple[int, ...],
    config: TopicConfig,
    now_ms: int,
    work: RecordWork | None = None,
    on_loop: bool = True,
) -> Checked:
    """KafkaError says what is wrong with the records; RecordsBesideLoop that it takes too long to find out here.

    `fields` are those of the header, in its order. Without `work`, the batch is all that its request has.
    """
    try:
        if not fields[ATTRIBUTES] & CODEC_MASK:
            return check_payload(batch, RECORDS_AT, fields, config, now_ms, work, on_loop)
        work = work or RecordWork()
        payload = _decompressed(batch, fields[ATTRIBUTES] & CODEC_MASK, work, on_loop)
        try:
            return check_payload(payload, 0, fields, config, now_ms, work, on_loop)
        finally:
            give_back(payload)
    except (MemoryError, OSError) as error:  # of a mapping: nothing here touches a disk
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT, f"The node has no memory to check the batch now ({error}); try again"
        ) from None


def check_payload(
    payload: Buffer,
    position: int,
    fields: tuple[int, ...],
    config: TopicConfig,
    now_ms: int,
    work: RecordWork | None,
    on_loop: bool,
) -> Checked:
    """The same of records that are not compressed (any more), which nearly all are: they are in `payload` from `position` on."""
    count, walker = fields[RECORDS_COUNT], walk.in_use
    if on_loop:
        if work is None:
            if count > walker.records_on_loop_max:
                raise RecordsBesideLoop
        else:
            work.loop_records_left -= count
            if work.loop_records_left < 0:
                raise work.leave_loop()
    min_timestamp, max_timestamp, keyless_count = walker.walk(payload, position, count, fields[BASE_TIMESTAMP])
    if config.log_append_time:
        is_untimely = fields[ATTRIBUTES] & TIMESTAMP_TYPE_FLAG != 0
    else:
        before = config.message_timestamp_before_max_ms
        is_untimely = max_timestamp - now_ms > config.message_timestamp_after_max_ms or (
            before != NEVER and now_ms - min_timestamp > before and min_timestamp != NO_TIMESTAMP
        )
    if is_untimely or (keyless_count and config.compact):
        found = Offences(keyless_count > 0 and config.compact, is_untimely)
        raise _refusal(payload, position, fields, config, now_ms, work or RecordWork(), found, on_loop)
    if config.compression_type == "producer":
        return None, max_timestamp
    return _recoded(payload, position, fields, config, work or RecordWork(), on_loop), max_timestamp


def _refusal(
    payload: Buffer,
    position: int,
    fields: tuple[int, ...],
    config: TopicConfig,
    now_ms: int,
    work: RecordWork,
    found: Offences,
    on_loop: bool,
) -> Exception:
    """The error that names the records which are to blame, as far as the request may still cost that."""
    header = BatchHeader._make(fields)
    if on_loop:
        work.loop_blamed_left -= header.records_count
        if work.loop_blamed_left < 0:
            return work.leave_loop()
    rules = RecordRules(config.compact, config.log_append_time, *_timestamp_bounds(config, now_ms))
    error = blame(payload, position, header, rules, found, records_max=work.blamed_left, errors_max=work.errors_left)
    work.blamed_left = max(work.blamed_left - header.records_count, 0)
    work.errors_left -= len(error.record_errors)
    return error


def _recoded(
    payload: Buffer, position: int, fields: tuple[int, ...], config: TopicConfig, work: RecordWork, on_loop: bool
) -> bytearray | None:
    """The batch under the topic's own codec; None if it is that already."""
    header = BatchHeader._make(fields)
    wanted = _wanted(config, header.codec)
    if wanted == header.codec:
        return None
    if on_loop:
        work.loop_bytes_left -= RECOMPRESSION_COST * len(payload)
        if work.loop_bytes_left < 0:
            raise work.leave_loop()
    if wanted == CompressionType.NONE and RECORDS_AT + len(payload) - position > config.max_message_bytes:
        raise _too_large(RECORDS_AT + len(payload) - position, config)
    level = _level(wanted, config) if len(payload) <= LEVEL_BYTES_MAX else None
    recoded = recompressed(header, memoryview(payload)[position:], wanted, level)
    if len(recoded) > config.max_message_bytes:
        raise _too_large(len(recoded), config)
    return recoded


def _timestamp_bounds(config: TopicConfig, now_ms: int) -> tuple[int, int]:
    """The earliest and the latest timestamp that a record may have."""
    before = config.message_timestamp_before_max_ms
    return -NEVER - 1 if before == NEVER else now_ms - before, now_ms + config.message_timestamp_after_max_ms


def _decompressed(batch: Buffer, codec: int, work: RecordWork, on_loop: bool) -> bytearray | memoryview:
    bytes_max = min(work.bytes_left, DECOMPRESSED_ANYWAY_BYTES + DECOMPRESSED_RATIO_MAX * len(batch))
    if bytes_max <= 0:
        raise InvalidRecord(
            f"The batches of one request would take more than {REQUEST_BYTES_MAX} bytes decompressed; send fewer at once"
        )
    payload = memoryview(batch)[RECORDS_AT:]
    if not on_loop:
        opened = decompress(CompressionType(codec), payload, bytes_max)
    else:
        room = min(bytes_max, work.loop_bytes_left)
        if len(payload) > room:
            raise work.leave_loop()
        try:
            opened = decompress(CompressionType(codec), payload, room)
        except InvalidRecord:  # broken, or longer than that
            if room < bytes_max:
                raise work.leave_loop() from None
            raise
        work.loop_bytes_left -= len(opened)
    work.bytes_left -= len(opened)
    return opened


def _wanted(config: TopicConfig, codec: int) -> CompressionType:
    match config.compression_type:
        case "producer":
            return CompressionType(codec)
        case "uncompressed":
            return CompressionType.NONE
        case name:
            return CompressionType.parse(name)


def _level(codec: CompressionType, config: TopicConfig) -> int | None:
    levels = {
        CompressionType.GZIP: config.compression_gzip_level,
        CompressionType.LZ4: config.compression_lz4_level,
        CompressionType.ZSTD: config.compression_zstd_level,
    }
    return levels.get(codec)


def _too_large(size_bytes: int, config: TopicConfig) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"with compression.type={config.compression_type} the batch has {size_bytes} bytes, "
        f"max.message.bytes is {config.max_message_bytes}",
    )
