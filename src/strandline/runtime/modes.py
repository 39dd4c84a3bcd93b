"""Who may read what a node writes: its owner alone (SEC-H1).

The metadata log holds credentials and sensitive configuration, the logs all that producers send. What exists already
keeps its mode.

Always true: a directory that is made here has mode 0700, a file 0600, under any umask.
"""

from __future__ import annotations

import os
import stat

DIRECTORY, FILE = 0o700, 0o600
_OF_OTHERS = stat.S_IROTH | stat.S_IWOTH | stat.S_IXOTH


def keep_to_owner() -> None:
    """Of everything that this process and its children make from now on, nothing is for others."""
    os.umask(0o077)


def readable_by_others(path: str) -> bool:
    """Whether users other than the owner and its group may read it; False if it does not exist."""
    try:
        return bool(os.stat(path).st_mode & _OF_OTHERS)
    except OSError:
        return False
