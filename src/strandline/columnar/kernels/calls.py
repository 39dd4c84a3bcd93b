"""What kernels there are, what they take, and the numbers that they and their callers share.

Always true: nothing here needs numba.
"""

from __future__ import annotations

from typing import Final, Protocol

BYTES, INT32S, INT64S, NUMBER = "uint8*", "int32*", "int64*", "int64"
"""What a kernel can be given: the address of bytes or of numbers, or a number."""


class Pointer(Protocol):
    """The address of bytes or of numbers, as a kernel sees it."""

    def __getitem__(self, index: int, /) -> int: ...
    def __setitem__(self, index: int, value: int, /) -> None: ...


READING: Final = {
    "scan_batches": (BYTES, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, INT64S, INT64S),
    "index_records": (BYTES, INT64S, NUMBER, INT64S, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, INT64S),
    "gather": (BYTES, INT64S, INT64S, NUMBER, NUMBER, BYTES, NUMBER, NUMBER, INT32S, BYTES),
    "index_headers": (
        BYTES,
        INT64S,
        NUMBER,
        NUMBER,
        NUMBER,
        INT64S,
        NUMBER,
        NUMBER,
        INT32S,
        BYTES,
        INT64S,
    ),
}

DONE, FULL, CORRUPT = 0, 1, 2
"""How far `index_records` got: to the end of its plan, to the end of a RecordBatch, or to a record that cannot be."""

(
    PLAN_POSITION,
    PLAN_END,
    PLAN_LEFT,
    PLAN_BASE_OFFSET,
    PLAN_BASE_TIMESTAMP,
    PLAN_IS_APPEND_TIME,
    PLAN_APPEND_TIME,
    PLAN_HEADER_POSITION,
    PLAN_CRC,
) = range(9)
PLAN_FIELDS: Final = 9
"""Of a batch that is to be walked: where its next record is and where the last one ends, how many are left; what their offsets and
timestamps count from; where its header is, and the CRC in there."""
ROW_FIELDS: Final = 9
HEADER_FIELDS: Final = 4
HEADER_BYTES: Final = 8
"""What Arrow keeps of a header besides its key and value: where each of them ends. An empty header is not free."""
WANTS_KEY, WANTS_VALUE, WANTS_HEADERS = 1, 2, 4

BATCH, ROWS, SIZE_BYTES, KEY_BYTES, KEY_NULLS, VALUE_BYTES, VALUE_NULLS, HEADERS_COUNT, HEADERS_NULLS = range(9)
STATE_FIELDS: Final = 9

WRITING: Final = {
    "measure_records": (
        *(INT64S, NUMBER, NUMBER, INT64S),
        *(INT64S, INT64S),
        *(INT64S, INT64S, INT64S, INT64S),
        *(NUMBER, INT64S, INT64S),
    ),
    "write_records": (
        *(INT64S, NUMBER, NUMBER, INT64S, INT64S),
        *(BYTES, INT64S, INT64S),
        *(BYTES, INT64S, INT64S),
        *(INT64S, INT64S),
        *(BYTES, INT64S, INT64S),
        *(BYTES, INT64S, INT64S),
        *(BYTES, NUMBER),
    ),
    "find_partitions": (BYTES, INT64S, INT64S, NUMBER, NUMBER, INT32S),
}
BATCH_BYTES, BATCH_TIMESTAMP_MAX = range(2)
BATCH_FIELDS: Final = 2

WALKING: Final = {"walk_records": (BYTES, INT64S)}
(
    WALK_POSITION,
    WALK_END,
    WALK_COUNT,
    WALK_BASE_TIMESTAMP,
    WALK_MIN_TIMESTAMP,
    WALK_MAX_TIMESTAMP,
    WALK_KEYLESS,
    WALK_BAD_INDEX,
    WALK_RESULT,
) = range(9)
WALK_FIELDS: Final = 9
"""What the walk is given and what it finds: in memory, because each argument of a call costs a tenth of a microsecond."""
