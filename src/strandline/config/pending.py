"""Keys that are understood and kept, and whose part of the system is not there yet.

Always true: setting one to anything but its default gives a warning; a stock file, which spells some of them out, still
starts. A key leaves this list in the change that brings its part.
"""

from __future__ import annotations

_PARTS = {
    "transactions": (
        "transactional.id.",
        "transaction.abort.",
        "transaction.remove.",
        "transaction.partition.",
        "transaction.state.",
        "add.partitions.to.txn.",
    ),
}


def pending_part(name: str) -> str | None:
    """The part that will honour this broker key, or None if the key is not waiting for one."""
    return next((part for part, prefixes in _PARTS.items() if name.startswith(prefixes)), None)
