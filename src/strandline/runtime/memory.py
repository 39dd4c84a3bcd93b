"""What the C library does with memory that is given back.

A Fetch makes a buffer of up to a megabyte for each partition and drops it when it is sent. By default glibc returns such memory to
the system at once, and the next Fetch pays for every page again: a tenth of a leader's time, measured.

Always true: no more than KEPT_BYTES is held back.
"""

from __future__ import annotations

import ctypes

KEPT_BYTES = 32 * 1024 * 1024
"""Twice what a large Fetch asks for in one partition."""
MAPPED_BYTES = 32 * 1024 * 1024
"""Buffers from here on are mapped one by one; it is the most that glibc takes."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Have freed memory kept for the next buffer; False where the C library knows no such setting."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)) and bool(mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES))
