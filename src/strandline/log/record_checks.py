"""The records of a produced batch: opened, walked, checked against the topic's rules, recompressed if the topic has its own codec.

A small batch is checked on the event loop. What would hold the loop up is checked beside it by the same function: RecordsBesideLoop
says so, and the request then copies the batch, has `check_beside` run elsewhere, and appends with what it found (SEC-L8).

Always true: every produced batch is walked before it is written (SEC-L9); what one request decompresses has a bound, and on the
loop it decompresses at most `LOOP_BYTES_MAX`, walks few enough records and recompresses little.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline.config.topic_config import TopicConfig
from strandline.errors import ErrorCode, KafkaError
from strandline.log.errors import RecordsBesideLoop
from strandline.ports import Buffer
from strandline.records import walk
from strandline.records.blame import blame
from strandline.records.compression import CompressionType, decompress, give_back
from strandline.records.errors import InvalidRecord
from strandline.records.header import HEADER, NO_TIMESTAMP, RECORDS_AT, TIMESTAMP_TYPE_FLAG, BatchHeader
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
BLAMED_ON_LOOP_MAX: Final = walk.PLAIN.records_on_loop_max
"""Records are named one by one in Python, however they are walked."""
DECOMPRESSED_ANYWAY_BYTES: Final = 16 * 1024 * 1024
DECOMPRESSED_RATIO_MAX: Final = 1024
"""A batch may decompress to this many times its size beyond the bytes that any may: a few bytes can't claim all our memory."""
NEVER: Final = 2**63 - 1


class RecordWork:
    """What is left of the work that the records of one request may cause."""

    __slots__ = ("bytes_left", "loop_bytes_left", "loop_records_left")

    def __init__(self) -> None:
        self.bytes_left = REQUEST_BYTES_MAX
        self.loop_bytes_left = LOOP_BYTES_MAX
        self.loop_records_left = walk.in_use.records_on_loop_max

    def leave_loop(self) -> RecordsBesideLoop:
        """The rest of the request is not tried on the loop either."""
        self.loop_bytes_left = self.loop_records_left = 0
        return RecordsBesideLoop()


class CheckedRecords(NamedTuple):
    """A batch whose records may be written, and what only they could tell."""

    batch: bytearray | None
    """The batch under the topic's codec, if its producer used another."""
    max_timestamp: int


def check_beside(batch: Buffer, config: TopicConfig, now_ms: int, work: RecordWork) -> CheckedRecords:
    """Where blocking is allowed. The batch must stay as it is meanwhile, and its header must have been checked."""
    return check_records(batch, BatchHeader._make(HEADER.unpack_from(batch)), config, now_ms, work, on_loop=False)


def check_records(
    batch: Buffer, header: BatchHeader, config: TopicConfig, now_ms: int, work: RecordWork, *, on_loop: bool = True
) -> CheckedRecords:
    """KafkaError says what is wrong with the records; RecordsBesideLoop that it takes too long to find out here."""
    if header.codec == CompressionType.NONE:
        return _check_payload(batch, RECORDS_AT, header, config, now_ms, work, on_loop)
    payload = _decompressed(batch, header.codec, work, on_loop)
    try:
        return _check_payload(payload, 0, header, config, now_ms, work, on_loop)
    finally:
        give_back(payload)


def _check_payload(
    payload: Buffer,
    position: int,
    header: BatchHeader,
    config: TopicConfig,
    now_ms: int,
    work: RecordWork,
    on_loop: bool,
) -> CheckedRecords:
    codec, count = header.codec, header.records_count
    if on_loop:
        work.loop_records_left -= count
        if work.loop_records_left < 0:
            raise work.leave_loop()
    min_timestamp, max_timestamp, keyless_count = walk.in_use.walk(payload, position, count, header.base_timestamp)
    is_keyless = bool(keyless_count) and config.compact
    earliest, latest = _timestamp_bounds(config, now_ms)
    is_untimely = (
        header.attributes & TIMESTAMP_TYPE_FLAG != 0
        if config.log_append_time
        else max_timestamp > latest or (min_timestamp < earliest and min_timestamp != NO_TIMESTAMP)
    )
    if is_keyless or is_untimely:
        if on_loop and count > BLAMED_ON_LOOP_MAX:
            raise work.leave_loop()
        blame(payload, position, header, config.compact, earliest, latest, is_append_time=config.log_append_time)
    wanted = _wanted(config, codec)
    if wanted == codec:
        return CheckedRecords(None, max_timestamp)
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
    return CheckedRecords(recoded, max_timestamp)


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
