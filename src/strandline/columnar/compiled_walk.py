"""The walk of a produced batch in machine code, where the store has it.

Always true: it is used only after it has given the plain walk's answers to a few batches, good and bad. Loading it imports neither
numba nor LLVM. It lets other threads run while it walks.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

from strandline.columnar.kernels import mapped
from strandline.columnar.kernels.calls import (
    WALK_BAD_INDEX,
    WALK_BASE_TIMESTAMP,
    WALK_FIELDS,
    WALK_KEYLESS,
    WALK_MAX_TIMESTAMP,
    WALK_MIN_TIMESTAMP,
    WALK_RESULT,
    WALKING,
)
from strandline.columnar.kernels.machine_code import Kernel
from strandline.ports import Buffer
from strandline.records.errors import InvalidRecord
from strandline.records.record import encode_record
from strandline.records.walk import PLAIN, SOUND, Walked, Walker, refuse

RECORDS_ON_LOOP_MAX: Final = 500_000
RECORDS_HELD_MAX: Final = 50_000
"""So many are walked without letting other threads run: half a millisecond, and a thread that gives way may wait for five."""

_GIVEN: Final = struct.Struct("=4q")
_FOUND: Final = struct.Struct("=5q")
_FOUND_AT: Final = _GIVEN.size
assert (WALK_BASE_TIMESTAMP, WALK_MIN_TIMESTAMP) == (3, 4), "what is given comes first"
assert (WALK_MAX_TIMESTAMP, WALK_KEYLESS, WALK_BAD_INDEX, WALK_RESULT) == (5, 6, 7, 8), "as _FOUND has them"
_Bytes = ctypes.c_char * 0


class _Cell(threading.local):
    """What a walk is given and finds: one for each thread that walks."""

    def __init__(self) -> None:
        memory = bytearray(8 * WALK_FIELDS)
        address = ctypes.addressof((ctypes.c_char * len(memory)).from_buffer(memory))
        self.parts = memory, ctypes.c_void_p(address + 8 * WALK_RESULT), ctypes.c_void_p(address)
        """The memory, where in it the result goes, and where it begins."""


def load() -> Walker | None:
    """None where there is no such code; `can_be_made` says whether there could be."""
    found = mapped.load("walking", WALKING["walk_records"])
    if found is None:
        return None
    walker = Walker(_calling(*found), RECORDS_ON_LOOP_MAX)
    return walker if _agrees(walker) else None


def can_be_made() -> bool:
    """Whether there is a compiler for it. Does not import it."""
    return find_spec("numba") is not None


def _calling(held: Kernel, released: Kernel) -> Callable[[Buffer, int, int, int], Walked]:
    """The kernel twice: with other threads held up, and with them let run."""
    cell, give, found_in = _Cell(), _GIVEN.pack_into, _FOUND.unpack_from

    def walk(data: Buffer, position: int, count: int, base_timestamp: int) -> Walked:
        if type(data) is bytes:
            address: object = data
        else:
            try:
                address = _Bytes.from_buffer(data)
            except TypeError:  # a view of something that may not be written to
                address = bytes(data)
        memory, result, begin = cell.parts
        give(memory, 0, position, len(data), count, base_timestamp)
        call = held if count <= RECORDS_HELD_MAX else released
        status = call(result, None, address, begin)
        assert status == 0, f"the walk ended with status {status}"
        min_timestamp, max_timestamp, keyless_count, bad_index, reason = found_in(memory, _FOUND_AT)
        if reason != SOUND:
            refuse(reason, bad_index, count)
        return min_timestamp, max_timestamp, keyless_count

    return walk


def _agrees(walker: Walker) -> bool:
    """Code that is not what it should be may do anything, but would hardly come through this."""
    good = b"".join(
        encode_record(i, 70 * i - 100, None if i % 3 else b"k" * i, b"v" * 40 * i, [("h", None), ("", b"x")] * (i % 2))
        for i in range(20)
    )
    cases = [(good, 0, 20), (b"\0" * 61 + good, 61, 20), (good, 0, 19), (good, 0, 21), (good[:-1], 0, 20), (b"", 0, 1)]
    cases += [(good[:at] + b"\xff" + good[at + 1 :], 0, 20) for at in range(0, 500, 97)]
    return all(_outcome(walker, *case) == _outcome(PLAIN, *case) for case in cases)


def _outcome(walker: Walker, data: bytes, position: int, count: int) -> Walked | str:
    try:
        return walker.walk(data, position, count, 1_700_000_000_000)
    except InvalidRecord as error:
        return error.message
