"""Kafka's checkpoint files: small texts that a person can read with `cat`.

    0                      version
    2                      number of entries
    topic partition offset     one line each (offset checkpoints)
    epoch start-offset         one line each (leader-epoch-checkpoint)

Always true: a file is replaced as a whole, so after a crash it holds the old entries or the new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from strandline.ids import TopicPartition
from strandline.log.errors import CorruptLog
from strandline.ports import Disk

VERSION = 0

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
REPLICATION_OFFSET_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"


def _write(disk: Disk, path: str, lines: list[str]) -> None:
    disk.write_file(path, "\n".join([str(VERSION), str(len(lines)), *lines, ""]).encode())


def _read(disk: Disk, path: str, fields: int) -> list[list[str]]:
    """The entries as lists of words; [] if there is no file."""
    if not disk.exists(path):
        return []
    text = disk.read_file(path).decode("utf-8", "replace")
    lines = text.split("\n")
    try:
        if not text:
            return []
        if int(lines[0]) != VERSION:
            raise CorruptLog(f"{path} has version {lines[0]}, we read version {VERSION}")
        entries = [line.split() for line in lines[2:] if line.strip()]
        if len(entries) != int(lines[1]):
            raise CorruptLog(f"{path} promises {lines[1]} entries and holds {len(entries)}")
    except (ValueError, IndexError) as error:
        raise CorruptLog(f"{path} does not start with a version and a count") from error
    for entry in entries:
        if len(entry) != fields or not all(_is_integer(word) for word in entry[-2:]):
            raise CorruptLog(f"{path} has a malformed line: {' '.join(entry)}")
    return entries


def _is_integer(word: str) -> bool:
    return word.removeprefix("-").isdecimal()


def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    _write(disk, path, [f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())])


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    return {(topic, int(partition)): int(offset) for topic, partition, offset in _read(disk, path, 3)}


def write_epochs(disk: Disk, path: str, entries: Iterable[tuple[int, int]]) -> None:
    _write(disk, path, [f"{epoch} {start_offset}" for epoch, start_offset in entries])


def read_epochs(disk: Disk, path: str) -> list[tuple[int, int]]:
    entries = [(int(epoch), int(start_offset)) for epoch, start_offset in _read(disk, path, 2)]
    for (epoch, start_offset), (next_epoch, next_start_offset) in pairwise(entries):
        if epoch >= next_epoch or start_offset >= next_start_offset:
            raise CorruptLog(
                f"{path} has epoch {next_epoch} at {next_start_offset} after epoch {epoch} at {start_offset}"
            )
    return entries


def partition_metadata(topic_id: str) -> bytes:
    """What a `partition.metadata` file says: whose log this is, so that a topic of the same name can't inherit it."""
    return f"version: 0\ntopic_id: {topic_id}".encode()


def read_partition_metadata(disk: Disk, path: str) -> str | None:
    """The topic id in a `partition.metadata` file, or None if there is no such file."""
    if not disk.exists(path):
        return None
    for line in disk.read_file(path).decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "topic_id" and value.strip():
            return value.strip()
    raise CorruptLog(f"{path} names no topic_id")
