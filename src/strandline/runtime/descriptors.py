"""How the descriptors that the system allows this process are divided (SEC-L5).

Always true: files, connections and the reserve together are no more than the limit, so that connections, of which strangers decide,
never take what a log needs. Files get by with few, because the least used are closed and opened again; connections can't.
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.runtime.files import BURST_SHARE

RESERVE_MAX, RESERVE_SHARE = 256, 4
"""For what is neither: the HTTP port, connections to other nodes, libraries, what a worker opens for a moment, and connections that
are accepted only to be refused."""
FILES_MIN_MAX = 8192
"""So many are left to files, or half of all, before connections get their half."""


class Descriptors(NamedTuple):
    files: int
    """Those that are opened for a while beyond their limit included (`FileTable`)."""
    connections: int
    reserve: int


def divide(limit: int, max_connections: int) -> Descriptors:
    """Half for connections, or as many as they may be if files still have enough."""
    reserve = min(RESERVE_MAX, limit // RESERVE_SHARE)
    shared = limit - reserve
    files_min = min(FILES_MIN_MAX, shared // 2)
    connections = min(max(shared // 2, max_connections), shared - files_min)
    return Descriptors(shared - connections, connections, reserve)


def files_kept(files: int) -> int:
    """How many files stay open, so that there is room for those that work beside the event loop opens at once."""
    return max(1, files * BURST_SHARE // (BURST_SHARE + 1))
