"""The kernels of the decoder: `index_records` finds and checks, `gather` copies, `index_headers` finds what is in the headers.

Always true: reading is as strict as `records.record.read_records`, and only spans that were found right are ever copied.
"""

from __future__ import annotations

from strandline.columnar.batches import BASE_OFFSET_MAX, RECORD_BYTES_MIN
from strandline.columnar.kernels.calls import (
    BATCH,
    CORRUPT,
    DONE,
    FULL,
    HEADER_BYTES,
    HEADERS_COUNT,
    HEADERS_NULLS,
    KEY_BYTES,
    KEY_NULLS,
    PLAN_APPEND_TIME,
    PLAN_BASE_OFFSET,
    PLAN_BASE_TIMESTAMP,
    PLAN_CRC,
    PLAN_END,
    PLAN_FIELDS,
    PLAN_HEADER_POSITION,
    PLAN_IS_APPEND_TIME,
    PLAN_LEFT,
    PLAN_POSITION,
    ROWS,
    SIZE_BYTES,
    VALUE_BYTES,
    VALUE_NULLS,
    WANTS_HEADERS,
    WANTS_KEY,
    WANTS_VALUE,
    Pointer,
)
from strandline.columnar.kernels.primitives import copy, numpy, read_int, read_varint, read_varlong
from strandline.records import header as layout

# Of the header of a batch. Kernels see plain numbers only.
_LENGTH_AT, _MAGIC_AT, _CRC_AT, _ATTRIBUTES_AT = layout.LENGTH_AT, layout.MAGIC_AT, layout.CRC_AT, layout.ATTRIBUTES_AT
_LAST_OFFSET_DELTA_AT, _BASE_TIMESTAMP_AT = layout.LAST_OFFSET_DELTA_AT, layout.BASE_TIMESTAMP_AT
_MAX_TIMESTAMP_AT, _COUNT_AT, _RECORDS_AT = layout.MAX_TIMESTAMP_AT, layout.COUNT_AT, layout.RECORDS_AT
_LOG_OVERHEAD, _MAGIC = layout.LOG_OVERHEAD, layout.MAGIC
_UNUSUAL_FLAGS = layout.CODEC_MASK | layout.CONTROL_FLAG
_TRANSACTIONAL_FLAG, _TIMESTAMP_TYPE_FLAG = layout.TRANSACTIONAL_FLAG, layout.TIMESTAMP_TYPE_FLAG
_BASE_OFFSET_MAX, _RECORD_BYTES_MIN = BASE_OFFSET_MAX, RECORD_BYTES_MIN

_MILLISECONDS_MAX = (1 << 63) // 1000
_TIMESTAMP_MAX = (1 << 63) - 1


def scan_batches(
    data: Pointer,
    size: int,
    position: int,
    start: int,
    end: int,
    hides_transactions: int,
    batches_max: int,
    bytes_max: int,
    plan: Pointer,
    state: Pointer,
) -> int:
    """Plan the next batches for as long as they are whole, uncompressed, in range and of one timestamp type. Returns how many.

    `state` gets the position of the batch after them, which somebody else must look at.
    """
    found = 0
    planned_bytes = 0
    while found < batches_max and planned_bytes < bytes_max and size - position >= _RECORDS_AT:
        length = read_int(data, position + _LENGTH_AT, 4)
        base_offset = read_int(data, position, 8)
        is_sound = _RECORDS_AT - _LOG_OVERHEAD <= length <= size - position - _LOG_OVERHEAD
        if not is_sound or data[position + _MAGIC_AT] != _MAGIC or not 0 <= base_offset <= _BASE_OFFSET_MAX:
            break
        if base_offset >= end or base_offset + read_int(data, position + _LAST_OFFSET_DELTA_AT, 4) < start:
            break
        attributes = read_int(data, position + _ATTRIBUTES_AT, 2)
        count = read_int(data, position + _COUNT_AT, 4)
        if attributes & _UNUSUAL_FLAGS or (hides_transactions and attributes & _TRANSACTIONAL_FLAG):
            break
        if not 0 < count <= (length - _RECORDS_AT + _LOG_OVERHEAD) // _RECORD_BYTES_MIN:
            break
        is_append_time = 1 if attributes & _TIMESTAMP_TYPE_FLAG else 0
        if found and is_append_time != plan[PLAN_IS_APPEND_TIME]:
            break
        batch_end = position + _LOG_OVERHEAD + length
        entry = found * PLAN_FIELDS
        plan[entry + PLAN_POSITION] = position + _RECORDS_AT
        plan[entry + PLAN_END] = batch_end
        plan[entry + PLAN_LEFT] = count
        plan[entry + PLAN_BASE_OFFSET] = base_offset
        plan[entry + PLAN_BASE_TIMESTAMP] = read_int(data, position + _BASE_TIMESTAMP_AT, 8)
        plan[entry + PLAN_IS_APPEND_TIME] = is_append_time
        plan[entry + PLAN_APPEND_TIME] = read_int(data, position + _MAX_TIMESTAMP_AT, 8)
        plan[entry + PLAN_HEADER_POSITION] = position
        plan[entry + PLAN_CRC] = read_int(data, position + _CRC_AT, 4) & 0xFFFF_FFFF
        planned_bytes += length
        position = batch_end
        found += 1
    state[BATCH] = position
    return found


def index_records(
    data: Pointer,
    plan: Pointer,
    batches_count: int,
    fields: Pointer,
    rows_max: int,
    bytes_max: int,
    wanted: int,
    start: int,
    end: int,
    state: Pointer,
) -> int:
    """Walk the records of the planned batches, and note where each row's parts are, until a RecordBatch is full.

    The plan is written to, so that the walk can go on where it stopped.
    """
    rows = state[ROWS]
    size_bytes = state[SIZE_BYTES]
    batch = state[BATCH]
    status = DONE
    while batch < batches_count:
        entry = batch * PLAN_FIELDS
        position = plan[entry + PLAN_POSITION]
        limit = plan[entry + PLAN_END]
        left = plan[entry + PLAN_LEFT]
        base_offset = plan[entry + PLAN_BASE_OFFSET]
        base_timestamp = plan[entry + PLAN_BASE_TIMESTAMP]
        is_append_time = plan[entry + PLAN_IS_APPEND_TIME]
        append_time = plan[entry + PLAN_APPEND_TIME]
        while left > 0:
            length, at = read_varint(data, position, limit)
            record_end = at + length
            if length < 0 or record_end > limit:
                status = CORRUPT
                break
            timestamp_delta, at = read_varlong(data, at + 1, record_end)
            offset_delta, at = read_varint(data, at, record_end)
            key_size, at = read_varint(data, at, record_end)
            key_at = at
            if key_size > 0:
                at += key_size
            value_size, at = read_varint(data, at, record_end)
            value_at = at
            if value_size > 0:
                at += value_size
            headers_count, at = read_varint(data, at, record_end)
            headers_at = at
            headers_bytes = 0
            if headers_count != 0:
                if headers_count < 0 or headers_count > record_end - at:
                    status = CORRUPT
                    break
                for _ in range(headers_count):
                    size, at = read_varint(data, at, record_end)
                    if size < 0:
                        at = record_end + 1
                        break
                    at += size
                    headers_bytes += HEADER_BYTES + size
                    size, at = read_varint(data, at, record_end)
                    if size > 0:
                        at += size
                        headers_bytes += size
            if timestamp_delta > 0:
                is_beyond = base_timestamp > _TIMESTAMP_MAX - timestamp_delta
            else:
                is_beyond = base_timestamp < -_TIMESTAMP_MAX - 1 - timestamp_delta
            if at != record_end or is_beyond:
                status = CORRUPT
                break
            timestamp = base_timestamp + timestamp_delta
            offset = base_offset + offset_delta
            if start <= offset < end:
                row_bytes = 0
                if wanted & WANTS_KEY and key_size > 0:
                    row_bytes += key_size
                if wanted & WANTS_VALUE and value_size > 0:
                    row_bytes += value_size
                if wanted & WANTS_HEADERS:
                    row_bytes += headers_bytes
                if rows > 0 and (rows >= rows_max or size_bytes + row_bytes > bytes_max):
                    status = FULL
                    break
                if is_append_time:
                    timestamp = append_time
                timestamp = min(max(timestamp, -_MILLISECONDS_MAX), _MILLISECONDS_MAX)
                fields[rows] = offset
                fields[rows_max + rows] = timestamp * 1000
                fields[2 * rows_max + rows] = key_at
                fields[3 * rows_max + rows] = key_size
                fields[4 * rows_max + rows] = value_at
                fields[5 * rows_max + rows] = value_size
                fields[6 * rows_max + rows] = headers_at
                fields[7 * rows_max + rows] = headers_count
                fields[8 * rows_max + rows] = record_end
                if key_size < 0:
                    state[KEY_NULLS] += 1
                else:
                    state[KEY_BYTES] += key_size
                if value_size < 0:
                    state[VALUE_NULLS] += 1
                else:
                    state[VALUE_BYTES] += value_size
                if headers_count == 0:
                    state[HEADERS_NULLS] += 1
                else:
                    state[HEADERS_COUNT] += headers_count
                size_bytes += row_bytes
                rows += 1
            position = record_end
            left -= 1
        plan[entry + PLAN_POSITION] = position
        plan[entry + PLAN_LEFT] = left
        if status == DONE and position != limit:
            status = CORRUPT
        if status != DONE:
            break
        batch += 1
    state[ROWS] = rows
    state[SIZE_BYTES] = size_bytes
    state[BATCH] = batch
    return status


def gather(
    data: Pointer,
    starts: Pointer,
    sizes: Pointer,
    first: int,
    last: int,
    target: Pointer,
    target_bytes: int,
    used: int,
    ends: Pointer,
    validity: Pointer,
) -> int:
    """Copy the cells of the rows from `first` to before `last` one after another, and note where each ends.

    A negative size is a null, and its bit is taken out of `validity`. Returns how much of the target is used; -1 means that
    the sizes do not fit, which nobody who counted them will see.
    """
    ends[first] = used
    for row in range(first, last):
        size = sizes[row]
        if size < 0:
            validity[row >> 3] &= numpy.uint8(~(1 << (row & 7)) & 0xFF)
        elif size > 0:
            if size > target_bytes - used:
                return -1
            copy(target, used, data, starts[row], size)
            used += size
        ends[row + 1] = used
    return used


def index_headers(
    data: Pointer,
    fields: Pointer,
    rows_max: int,
    first: int,
    last: int,
    header_fields: Pointer,
    headers_max: int,
    found: int,
    ends: Pointer,
    validity: Pointer,
    state: Pointer,
) -> int:
    """Note where the keys and values of the headers of these rows are. Returns how many there are by then; -1 as `gather`."""
    ends[first] = found
    for row in range(first, last):
        at = fields[6 * rows_max + row]
        count = fields[7 * rows_max + row]
        limit = fields[8 * rows_max + row]
        if count == 0:
            validity[row >> 3] &= numpy.uint8(~(1 << (row & 7)) & 0xFF)
        elif count > headers_max - found:
            return -1
        for _ in range(count):
            size, at = read_varint(data, at, limit)
            if size < 0 or at + size > limit:
                return -1
            header_fields[found] = at
            header_fields[headers_max + found] = size
            state[KEY_BYTES] += size
            size, at = read_varint(data, at + size, limit)
            if at + max(size, 0) > limit:
                return -1
            header_fields[2 * headers_max + found] = at
            header_fields[3 * headers_max + found] = size
            if size < 0:
                state[VALUE_NULLS] += 1
            else:
                state[VALUE_BYTES] += size
                at += size
            found += 1
        ends[row + 1] = found
    return found
