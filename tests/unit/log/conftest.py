"""Small logs on a real disk, and on one that loses power."""

from __future__ import annotations

import asyncio
import builtins
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strandline.config.topic_config import TopicConfig
from strandline.log.log import Log
from strandline.log.recovery import RecoveredLog, load
from strandline.node.log_effects import perform
from strandline.ports import Disk
from strandline.records.batch import BatchBuilder, decode
from strandline.records.control import ControlRecordType, control_key, end_txn_marker
from strandline.records.header import iterate
from strandline.runtime.disk import FileDisk
from strandline.sim.world import World

NOW = 1_700_000_000_000
ALL = 2**31 - 1
_DEFAULTS = TopicConfig.build()


def topic(**fields: Any) -> TopicConfig:
    """Kafka's defaults, but for these fields."""
    return replace(_DEFAULTS, **fields)


def batch(*values: str, timestamps: tuple[int, ...] = (), **fields: Any) -> memoryview:
    """A client's batch: one record for each value, at NOW unless told otherwise."""
    builder = BatchBuilder()
    for value, timestamp in zip(values, timestamps or (NOW,) * len(values), strict=True):
        builder.append(value[:1].encode(), value.encode(), timestamp=timestamp)
    return memoryview(builder.build(**fields))


def sized(size: int, *, timestamp: int = NOW, **fields: Any) -> memoryview:
    """A batch of one record that has exactly this many bytes."""
    for room in range(max(size - 75, 0), size):
        builder = BatchBuilder()
        builder.append(b"k", b"x" * room, timestamp=timestamp)
        if builder.size_bytes == size:
            return memoryview(builder.build(**fields))
    raise AssertionError(f"no batch of one record has {size} bytes")


def marker(kind: ControlRecordType, producer_id: int, epoch: int, coordinator_epoch: int = 7) -> bytearray:
    """What a transaction coordinator has written into a partition when a transaction ends."""
    builder = BatchBuilder()
    builder.append(control_key(kind), end_txn_marker(coordinator_epoch), timestamp=NOW)
    return builder.build(producer_id=producer_id, producer_epoch=epoch, transactional=True, control=True)


def values_in(data: bytes) -> list[tuple[int, str]]:
    """Offset and value of every record in whole batches."""
    return [
        (record.offset, (record.value or b"").decode())
        for position, header in iterate(data)
        if not header.is_control
        for record in decode(data[position : position + header.size_bytes])
    ]


def contents(log: Log) -> list[tuple[int, str]]:
    """All that a consumer would read from the start, fetch by fetch."""
    found: list[tuple[int, str]] = []
    offset = log.log_start_offset
    while data := log.read(offset, ALL, log.log_end_offset, min_one=True):
        found += [(at, value) for at, value in values_in(bytes(data)) if at >= log.log_start_offset]
        offset = [header.next_offset for _, header in iterate(data)][-1]
    return found


class LogDir:
    """One partition's directory and the disk it is on."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path

    def recover(
        self,
        *,
        clean: bool = False,
        recovery_point: int = 0,
        start: int = 0,
        clean_offset: int = 0,
        high_watermark: int | None = None,
        **fields: Any,
    ) -> RecoveredLog:
        config = topic(**fields)
        return load(
            self.disk,
            self.path,
            config,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=start,
            clean_offset=clean_offset,
            high_watermark=high_watermark,
            now_ms=NOW,
        )

    def open(self, **fields: Any) -> Log:
        """As after a clean shutdown, which is also how a new log begins."""
        return self.recover(clean=True, **fields).log

    def flush(self, log: Log) -> None:
        asyncio.run(perform(log.flush()))

    def names(self, suffix: str) -> list[str]:
        return [name for name in self.disk.listdir(self.path) if name.endswith(suffix)]

    def file(self, name: str) -> str:
        return f"{self.path}/{name}"

    def bytes(self, name: str) -> bytes:
        return self.disk.read_file(self.file(name))

    def replace(self, name: str, data: builtins.bytes) -> None:
        """Put other bytes into a file, as a failing device would."""
        self.disk.write_file(self.file(name), data)


class PoweredLogDir(LogDir):
    """The same on a host whose power can fail."""

    def __init__(self, seed: int | str) -> None:
        self.world = World(seed)
        self.node = self.world.node("n1")
        self.randomness = random.Random(seed)
        super().__init__(self.node.disk, "/data/t-0")
        self.node.disk.cold_probability = 0
        self.node.disk.mkdir(self.path)
        self.node.disk.sync_dir("/")
        self.node.disk.sync_dir("/data")

    def flush(self, log: Log) -> None:
        self.world.run(perform(log.flush()))

    def power_loss(self) -> None:
        self.node.power_loss()
        self.node.restart()


@pytest.fixture
def disk() -> Iterator[FileDisk]:
    disk = FileDisk(max_open_files=64)
    yield disk
    disk.close()


@pytest.fixture
def directory(disk: FileDisk, tmp_path: Path) -> LogDir:
    return LogDir(disk, str(tmp_path / "t-0"))


@pytest.fixture
def powered() -> Iterator[PoweredLogDir]:
    directory = PoweredLogDir(7)
    yield directory
    directory.world.close()
