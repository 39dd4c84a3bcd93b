"""Names of files and directories in a Kafka log dir.

Always true: an offset in a name has twenty digits, so names sort as offsets do; a partition's directory is `topic-partition`,
and whatever waits for deletion is `topic-partition.<id>-delete`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from strandline.ids import TopicPartition

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
PRODUCER_SNAPSHOT_SUFFIX = ".snapshot"
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
REPAIR_SUFFIX = ".repair"

DELETE_DIR_SUFFIX = "-delete"
CLUSTER_METADATA_TOPIC = "__cluster_metadata"

TOPIC_NAME_LENGTH_MAX = 249
_OFFSET = re.compile(r"[0-9]{20}")
_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")
_PARTITION_DIR = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>[0-9]+)")
_DELETE_DIR = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>[0-9]+)\.[0-9a-f]{32}-delete")


def of_offset(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def offset_of(name: str) -> int:
    """The offset that a file name starts with; ValueError if it has none."""
    stem = name.partition(".")[0]
    if not _OFFSET.fullmatch(stem):
        raise ValueError(f"'{name}' does not start with a 20-digit offset")
    return int(stem)


def offsets_in(listing: Iterable[str], suffix: str) -> list[int]:
    """The offsets of the files with this suffix, rising; a name without an offset is not ours and is passed over."""
    return sorted(
        int(stem)
        for stem, dot, rest in (name.partition(".") for name in listing)
        if dot + rest == suffix and _OFFSET.fullmatch(stem)
    )


def partition_dir(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_partition_dir(name: str) -> TopicPartition | None:
    """Topic and partition of a directory that holds a live log, or None."""
    match = _PARTITION_DIR.fullmatch(name)
    return (match["topic"], int(match["partition"])) if match else None


def doomed_dir(topic: str, partition: int, unique: bytes) -> str:
    """The name a partition's directory takes while it waits for deletion (cut so that it stays a legal file name)."""
    suffix = f"-{partition}.{unique.hex()}{DELETE_DIR_SUFFIX}"
    return topic[: 255 - len(suffix)] + suffix


def stray_dir(name: str, unique: bytes) -> str:
    """The name of a directory that was set aside because it is not part of the cluster."""
    suffix = f".{unique.hex()}-stray"
    return name[: 255 - len(suffix)] + suffix


def is_doomed_dir(name: str) -> bool:
    return _DELETE_DIR.fullmatch(name) is not None


def topic_name_problem(name: str) -> str | None:
    """Why `name` can't be a topic, as a sentence, or None if it can."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return "'.' or '..' is not allowed"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return f"the length of '{name[:32]}…' is longer than the max allowed length {TOPIC_NAME_LENGTH_MAX}"
    if not _LEGAL_TOPIC.fullmatch(name):
        return f"'{name[:64]}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def collision_key(name: str) -> str:
    """Two topics with the same key would share a metric name, as Kafka sees it: '.' and '_' are one there."""
    return name.replace(".", "_")
