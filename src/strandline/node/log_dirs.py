"""A node's log dirs: whose they are, whether they were left in order, what their checkpoints say.

Always true: a directory is used by one process at a time and belongs to one node of one cluster; the mark of a clean
shutdown is gone, on the device too, before anything is written.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from strandline.ids import Uuid
from strandline.log import checkpoints
from strandline.log.checkpoints import TopicPartition
from strandline.log.errors import CorruptLog
from strandline.ports import Disk

META_PROPERTIES = "meta.properties"
LOCK_FILE = ".lock"
META_VERSION = "1"


class StorageError(Exception):
    """The log dirs can't be used as they are; says which and what to do."""


@dataclass(slots=True)
class LogDir:
    path: str
    directory_id: Uuid
    clean: bool
    """The last process to use it shut down in order."""
    recovery_points: Mapping[TopicPartition, int] = field(default_factory=dict)
    start_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    online: bool = True


def format_dirs(
    disk: Disk, paths: Sequence[str], cluster_id: str, node_id: int, randomness: random.Random
) -> list[str]:
    """Make these the log dirs of a node; the ones that were not yet. Blocks."""
    formatted = []
    for path in paths:
        if disk.exists(f"{path}/{META_PROPERTIES}"):
            present = _read_meta(disk, path)
            if present.get("cluster.id") != cluster_id or present.get("node.id") != str(node_id):
                raise StorageError(
                    f"{path} belongs to node {present.get('node.id')} of cluster {present.get('cluster.id')}; "
                    "name another log dir, or remove this one"
                )
            continue
        _make_dir(disk, path)
        lines = [
            f"node.id={node_id}",
            f"directory.id={Uuid.draw(randomness)}",
            f"version={META_VERSION}",
            f"cluster.id={cluster_id}",
        ]
        disk.write_file(f"{path}/{META_PROPERTIES}", "\n".join(["#", *lines, ""]).encode())
        formatted.append(path)
    return formatted


def _make_dir(disk: Disk, path: str) -> None:
    """A directory whose name is on the device, and the names of those above it that had to be made."""
    parent = path.rpartition("/")[0] or "/"
    if path not in ("", "/") and not disk.is_dir(path):
        _make_dir(disk, parent)
        disk.mkdir(path)
        disk.sync_dir(parent)


def _read_meta(disk: Disk, path: str) -> dict[str, str]:
    text = disk.read_file(f"{path}/{META_PROPERTIES}").decode("utf-8", "replace")
    pairs = (line.partition("=") for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def cluster_id_of(disk: Disk, path: str) -> str | None:
    """The cluster that a formatted directory belongs to, or None if it is not formatted."""
    return _read_meta(disk, path).get("cluster.id") if disk.exists(f"{path}/{META_PROPERTIES}") else None


def open_dirs(disk: Disk, paths: Sequence[str], node_id: int) -> tuple[str, list[LogDir]]:
    """The cluster id and the directories, locked and read. Blocks."""
    cluster_ids = {}
    opened = []
    for path in paths:
        if not disk.exists(f"{path}/{META_PROPERTIES}"):
            raise StorageError(f"{path} is not formatted; run: strandline storage format --config FILE --cluster-id ID")
        meta = _read_meta(disk, path)
        if meta.get("version") != META_VERSION:
            raise StorageError(
                f"{path}/{META_PROPERTIES} has version {meta.get('version')}, we read version {META_VERSION}"
            )
        if meta.get("node.id") != str(node_id):
            raise StorageError(f"{path} belongs to node {meta.get('node.id')}, and this is node {node_id}")
        try:
            disk.lock(f"{path}/{LOCK_FILE}")
        except BlockingIOError:
            raise StorageError(f"{path} is in use by another process; stop that one first") from None
        cluster_ids[meta.get("cluster.id", "")] = path
        opened.append(_open(disk, path, Uuid.parse(meta["directory.id"])))
    if len(cluster_ids) != 1:
        raise StorageError(f"the log dirs belong to different clusters: {cluster_ids}")
    return next(iter(cluster_ids)), opened


def _open(disk: Disk, path: str, directory_id: Uuid) -> LogDir:
    mark = f"{path}/{checkpoints.CLEAN_SHUTDOWN_FILE}"
    clean = disk.exists(mark)
    if clean:
        disk.remove(mark)
        disk.sync_dir(path)
    return LogDir(
        path,
        directory_id,
        clean,
        _offsets(disk, f"{path}/{checkpoints.RECOVERY_POINT_CHECKPOINT}"),
        _offsets(disk, f"{path}/{checkpoints.LOG_START_OFFSET_CHECKPOINT}"),
    )


def _offsets(disk: Disk, path: str) -> Mapping[TopicPartition, int]:
    """A checkpoint that can't be read counts as empty: logs are then read from their start, which is slow and safe."""
    try:
        return checkpoints.read_offsets(disk, path)
    except CorruptLog:
        return {}


def mark_clean(disk: Disk, directory: LogDir, broker_epoch: int) -> None:
    """Leave word that everything is on the device. Blocks."""
    mark = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    disk.write_file(f"{directory.path}/{checkpoints.CLEAN_SHUTDOWN_FILE}", mark.encode())
