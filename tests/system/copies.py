"""What the replicas of a partition have on disk, and whether it is the same.

Always true: a log is read as its batches, so nothing after the last whole batch counts, and where one segment ends and the
next begins does not matter.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from tests.system.local import Cluster, strandline
from tests.system.server import eventually

BATCH_HEAD = struct.Struct(">qi")


def checkpoint(cluster: Cluster, node_id: int) -> dict[tuple[str, int], int]:
    """The high watermarks that a broker has written down: a version, a count, then a line for each replica. None before
    it has done so for the first time."""
    file = cluster.directory / f"node-{node_id}" / "data" / "replication-offset-checkpoint"
    if not file.exists():
        return {}
    text = file.read_text()
    version, count, *lines = text.splitlines()
    assert version == "0"
    assert int(count) == len(lines)
    rows = [line.split(" ") for line in lines]
    return {(topic, int(partition)): int(offset) for topic, partition, offset in rows}


def segments(cluster: Cluster, node_id: int, topic: str, partition: int = 0) -> list[Path]:
    return sorted((cluster.directory / f"node-{node_id}" / "data" / f"{topic}-{partition}").glob("*.log"))


def stored(cluster: Cluster, node_id: int, topic: str, partition: int, below: int) -> bytes:
    """The batches of a replica below an offset, byte for byte."""
    kept = bytearray()
    for path in segments(cluster, node_id, topic, partition):
        data, position = path.read_bytes(), 0
        while position + BATCH_HEAD.size <= len(data):
            base_offset, length = BATCH_HEAD.unpack_from(data, position)
            end = position + BATCH_HEAD.size + length
            if base_offset >= below or end > len(data):
                return bytes(kept)
            kept += data[position:end]
            position = end
    return bytes(kept)


def ends(acknowledged: dict[int, tuple[int, int]]) -> dict[int, int]:
    """The end of each partition, if the last record of each was acknowledged at a partition and offset."""
    found: dict[int, int] = {}
    for partition, offset in acknowledged.values():
        found[partition] = max(found.get(partition, 0), offset + 1)
    return found


def assert_equal_on_disk(cluster: Cluster, topic: str, partitions: int, ends: dict[int, int]) -> None:
    """Every broker writes down the same watermark, at the end of each partition, and has the same bytes below it."""
    brokers = range(1, cluster.nodes + 1)
    for partition in range(partitions):

        def is_known(node_id: int, partition: int = partition) -> bool:
            return checkpoint(cluster, node_id).get((topic, partition)) == ends[partition]

        for node_id in brokers:
            what = f"node {node_id} writes down {ends[partition]} for {topic}-{partition}"
            eventually(lambda node_id=node_id, is_known=is_known: is_known(node_id), what, 30)  # type: ignore[misc]
        logs = {node_id: stored(cluster, node_id, topic, partition, ends[partition]) for node_id in brokers}
        assert logs[1]
        assert len(set(logs.values())) == 1, (
            f"{topic}-{partition} differs: { {n: len(log) for n, log in logs.items()} }"
        )


def described(cluster: Cluster, topic: str) -> list[dict[str, Any]]:
    """The partitions of a topic, as `replicas describe` shows them."""
    told = strandline("replicas", "describe", "--topic", topic, "--json", "--dir", str(cluster.directory))
    partitions: list[dict[str, Any]] = json.loads(told)["partitions"]
    return partitions


def events(cluster: Cluster, topic: str) -> list[dict[str, Any]]:
    """What `timeline` tells of a topic."""
    lines = strandline("timeline", "--json", "--topic", topic, "--dir", str(cluster.directory)).splitlines()
    return [event for event in map(json.loads, lines) if event.get("topic") == topic]
