"""A node's log dirs: whose they are, whether they were left in order, what their checkpoints say.

Always true: a directory is used by one process at a time and belongs to one node of one cluster; the mark of a clean
shutdown is gone, on the device too, before anything is written. One that can't be read is offline until the next start,
and nothing in it is touched, nor in one that fails later (`log_dir_failure.py`); one that belongs to another node is
never taken for an offline one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from strandline.controller.placement import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from strandline.ids import ZERO_UUID, TopicPartition, Uuid
from strandline.log import checkpoints, names
from strandline.log.errors import CorruptLog
from strandline.metadata import snapshot
from strandline.metadata.features import (
    SUPPORTED,
    UnknownFeature,
    bootstrap_features,
    bootstrap_records,
    check_supported,
)
from strandline.metadata.image import PartitionImage
from strandline.metadata.records import METADATA_VERSION_MIN, FeatureLevelRecord, MetadataRecord
from strandline.node.quorum.snapshots import BOOTSTRAP, name_of
from strandline.ports import Disk, is_out_of_handles

if TYPE_CHECKING:
    from strandline.wire.stubs.data import VotersRecord

META_PROPERTIES = "meta.properties"
LOCK_FILE = ".lock"
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
META_VERSION = "1"
UNKNOWN_DIRECTORIES = (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY)
"""What the metadata has for a replica while it is not known in which log dir it is."""


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
    high_watermarks: Mapping[TopicPartition, int] = field(default_factory=dict)
    clean_offsets: dict[TopicPartition, int] = field(default_factory=dict)
    """Up to where logs were cleaned, also as it goes on from here."""
    online: bool = True
    problem: str = ""
    """Why it was offline when the node started; its directory id may not be known then."""


def format_dirs(
    disk: Disk,
    paths: Sequence[str],
    cluster_id: str,
    node_id: int,
    randomness: random.Random,
    *,
    features: Mapping[str, int] | None = None,
    voters: VotersRecord | None = None,
    metadata_log_dir: str | None = None,
    timestamp_ms: int = 0,
) -> list[str]:
    """Make these the log dirs of a node; the ones that were not yet. Blocks.

    Each gets the records that a new cluster begins with: `features`, or what is usual now. With `voters`, a
    VotersRecord, the quorum is dynamic: they are left beside the metadata log, whose directory gets the id that they
    give this node's.
    """
    bootstrap = bootstrap_records(bootstrap_features() if features is None else features)
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
        disk.write_file(f"{path}/{BOOTSTRAP_CHECKPOINT}", _bootstrap(bootstrap, timestamp_ms))
        directory_id = Uuid.draw(randomness)
        if voters is not None and path == (metadata_log_dir or paths[0]):
            _write_voters(disk, path, voters, timestamp_ms)
            directory_id = next(
                (voter.voter_directory_id for voter in voters.voters if voter.voter_id == node_id), directory_id
            )
        lines = [
            f"node.id={node_id}",
            f"directory.id={directory_id}",
            f"version={META_VERSION}",
            f"cluster.id={cluster_id}",
        ]
        # Last: with this file a directory counts as formatted.
        disk.write_file(f"{path}/{META_PROPERTIES}", "\n".join(["#", *lines, ""]).encode())
        formatted.append(path)
    return formatted


def _bootstrap(records: Sequence[MetadataRecord], timestamp_ms: int) -> bytes:
    written = snapshot.write_records(
        records, METADATA_VERSION_MIN, (0, 0), timestamp_ms=timestamp_ms, last_contained_timestamp=0
    )
    return b"".join(written)


def _write_voters(disk: Disk, path: str, voters: VotersRecord, timestamp_ms: int) -> None:
    """The snapshot before the first record: it says who votes, and nothing else."""
    directory = f"{path}/{names.partition_dir(names.CLUSTER_METADATA_TOPIC, 0)}"
    _make_dir(disk, directory)
    content = snapshot.write_records(
        [], METADATA_VERSION_MIN, BOOTSTRAP, kraft_version=1, voters=voters, timestamp_ms=timestamp_ms
    )
    disk.write_file(f"{directory}/{name_of(BOOTSTRAP)}", b"".join(content))


def read_bootstrap(disk: Disk, metadata_log_dir: str) -> list[MetadataRecord]:
    """The records with which the log of a new cluster begins. Blocks.

    Of a directory that Kafka formatted, features that we do not serve are left out: the cluster has not begun, so it
    begins without them.
    """
    path = f"{metadata_log_dir}/{BOOTSTRAP_CHECKPOINT}"
    if not disk.exists(path):
        return [*bootstrap_records(bootstrap_features())]
    try:
        found = snapshot.read(disk.read_file(path))
    except snapshot.CorruptSnapshot as error:
        raise StorageError(f"{path} is damaged ({error}); remove it to begin with the usual features") from None
    records = [each for each in found.records if not isinstance(each, FeatureLevelRecord) or each.name in SUPPORTED]
    for record in records:
        if isinstance(record, FeatureLevelRecord):
            try:
                check_supported(record.name, record.feature_level)
            except UnknownFeature as error:
                raise StorageError(f"{path} was written for another release: {error}") from None
    return records


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


def open_dirs(
    disk: Disk, paths: Sequence[str], node_id: int, required: Collection[str] | None = None
) -> tuple[str, list[LogDir]]:
    """The cluster id and the directories, locked and read. Blocks.

    Those in `required` (all of them unless given) must be fine. Another one that can't be read, or is not formatted
    because its volume is not mounted, is offline. StorageError, or OSError, if the node can't start with them.
    """
    cluster_ids: dict[str, str] = {}
    opened = []
    for path in paths:
        try:
            opened.append(_open_one(disk, path, node_id, cluster_ids))
        except (_Unformatted, OSError) as error:
            if required is None or path in required or is_out_of_handles(error):
                raise
            opened.append(LogDir(path, ZERO_UUID, clean=False, online=False, problem=str(error)))
    if len(cluster_ids) != 1:
        raise StorageError(f"the log dirs belong to different clusters: {cluster_ids}")
    ids = [directory.directory_id for directory in opened if directory.online]
    if len(set(ids)) != len(ids):
        raise StorageError(f"two of the log dirs have the same directory.id, so one is a copy: {', '.join(paths)}")
    return next(iter(cluster_ids)), opened


class _Unformatted(StorageError):
    pass


def _open_one(disk: Disk, path: str, node_id: int, cluster_ids: dict[str, str]) -> LogDir:
    if not disk.exists(f"{path}/{META_PROPERTIES}"):
        raise _Unformatted(f"{path} is not formatted; run: strandline storage format --config FILE --cluster-id ID")
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
    opened = _open(disk, path, _directory_id(path, meta))
    cluster_ids[meta.get("cluster.id", "")] = path
    return opened


def _directory_id(path: str, meta: Mapping[str, str]) -> Uuid:
    try:
        return Uuid.parse(meta.get("directory.id", ""))
    except ValueError as error:
        raise StorageError(f"{path}/{META_PROPERTIES} has no directory.id that can be used: {error}") from None


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
        _offsets(disk, f"{path}/{checkpoints.REPLICATION_OFFSET_CHECKPOINT}"),
        _offsets(disk, f"{path}/{checkpoints.CLEANER_OFFSET_CHECKPOINT}"),
    )


def _offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """A checkpoint that can't be read counts as empty: logs are then read from their start, which is slow and safe."""
    try:
        return checkpoints.read_offsets(disk, path)
    except CorruptLog:
        return {}


def directory_of(state: PartitionImage, node_id: int) -> Uuid:
    """The log dir of this node's replica, as the metadata has it."""
    if node_id not in state.replicas or not state.directories:
        return MIGRATING_DIRECTORY
    return state.directories[state.replicas.index(node_id)]


def mark_clean(disk: Disk, directory: LogDir, broker_epoch: int) -> None:
    """Leave word that everything is on the device. Blocks."""
    mark = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    disk.write_file(f"{directory.path}/{checkpoints.CLEAN_SHUTDOWN_FILE}", mark.encode())
