"""Keys that are understood and kept, and whose part of the system is not there yet.

Always true: setting one to anything but its default gives a warning; a stock file, which spells some of them out, still
starts. A key leaves this list in the change that brings its part.
"""

from __future__ import annotations

_PARTS = {
    "a quorum of several nodes": (
        "controller.quorum.election.",
        "controller.quorum.fetch.",
        "controller.quorum.request.",
        "controller.quorum.retry.",
        "controller.quorum.append.",
        "broker.heartbeat.",
        "broker.session.",
        "initial.broker.registration.",
        "controlled.shutdown.",
        "socket.connection.setup.",
    ),
    "snapshots of the metadata": ("metadata.log.max.", "metadata.max.", "internal.metadata."),
    "replication": (
        "replica.lag.",
        "replica.fetch.",
        "replica.socket.timeout.",
        "auto.leader.",
        "leader.imbalance.",
        "unclean.leader.election.interval.",
        "log.dir.failure.",
    ),
    "consumer groups": ("group.", "offset.metadata.", "offsets."),
    "transactions": (
        "transactional.id.",
        "transaction.abort.",
        "transaction.remove.",
        "transaction.partition.",
        "transaction.state.",
        "add.partitions.to.txn.",
    ),
    "compaction": ("log.cleaner.backoff.",),
}


def pending_part(name: str) -> str | None:
    """The part that will honour this broker key, or None if the key is not waiting for one."""
    return next((part for part, prefixes in _PARTS.items() if name.startswith(prefixes)), None)
