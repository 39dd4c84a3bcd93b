"""The metadata log of a quorum of one: decide, append, flush, apply.

Always true: a record counts only once it is on the device; images come in the order of their records; a decision sees all
decisions before it, committed or not (`tip`), and is answered only when its own records are committed and applied here.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from strandline.config.topic_config import TopicConfig
from strandline.log import checkpoints, names
from strandline.log.log import Log, batches_from
from strandline.log.recovery import load
from strandline.metadata import framing
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import (
    METADATA_VERSION_4_3,
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    version_for,
)
from strandline.metadata.replay import replay
from strandline.node.tasks import to_the_end
from strandline.ports import Clock, Disk
from strandline.records.batch import BatchBuilder, decode
from strandline.records.control import ControlRecordType, control_key
from strandline.wire.messages import data, encode_data

T = TypeVar("T")

METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
QUORUM_STATE = "quorum-state"
BATCH_RECORDS_MAX = 10_000
BOOTSTRAP_FEATURES = {"metadata.version": METADATA_VERSION_4_3}
"""The features that a new cluster begins with."""


class _Uncommitted(NamedTuple):
    end_offset: int
    image: MetadataImage
    done: asyncio.Future[None]


class MetadataLog:
    def __init__(
        self, disk: Disk, directory: str, node_id: int, clock: Clock, on_failed: Callable[[str], None]
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._node_id = node_id
        self._clock = clock
        self._on_failed = on_failed
        self.truncated_bytes = 0
        """Cut from the log when it was loaded."""
        self._log: Log
        self._cut_off = False
        """The log that was loaded ends within a metadata transaction."""
        self._epoch = 0
        self._uncommitted: deque[_Uncommitted] = deque()
        self._appended = asyncio.Event()
        self.tip = self.committed = MetadataImage()

    @property
    def log(self) -> Log:
        return self._log

    async def open(self, config: TopicConfig, *, clean: bool) -> None:
        """Load what is there, begin a new epoch, and write what a new cluster begins with. Returns when that is committed."""
        await self._disk.offload(lambda: self._load(config, clean))
        self._append_batch([self._leader_change()], control=True)
        if self._cut_off:
            # Else all that is decided from now on would belong to a transaction that never ends.
            self._append([AbortTransactionRecord(reason="the log ended within it")])
        if not self.tip.features:
            records = [FeatureLevelRecord(name=name, feature_level=level) for name, level in BOOTSTRAP_FEATURES.items()]
            self._append(records)
        await self._log.flush()
        self.committed = self.tip

    def _load(self, config: TopicConfig, clean: bool) -> None:
        recovered = load(self._disk, self._directory, config, clean=clean, now_ms=self._clock.wall_ms())
        self._disk.sync_dir(self._directory.rpartition("/")[0])
        self._log = recovered.log
        self.truncated_bytes = recovered.truncated_bytes
        metadata = f"{self._directory}/{checkpoints.PARTITION_METADATA}"
        if not self._disk.exists(metadata):
            self._disk.write_file(metadata, checkpoints.partition_metadata(METADATA_TOPIC_ID))
        records: list[MetadataRecord] = []
        for segment, position, header in batches_from(self._log, self._log.log_start_offset):
            self._epoch = header.partition_leader_epoch
            if not header.is_control:
                batch = segment.file.read_blocking(position, header.size_bytes)
                records += [framing.decode(record.value or b"")[0] for record in decode(batch)]
        self.tip = replay(MetadataImage(), whole_transactions(records), self._log.log_end_offset, self._epoch)
        self._cut_off = ends_within_transaction(records)
        self._epoch = max(self._epoch, self._read_epoch()) + 1
        self._write_epoch()

    def _read_epoch(self) -> int:
        path = f"{self._directory}/{QUORUM_STATE}"
        if not self._disk.exists(path):
            return 0
        state = json.loads(self._disk.read_file(path))
        return int(state["leaderEpoch"])

    def _write_epoch(self) -> None:
        state = {
            "clusterId": "",
            "leaderId": self._node_id,
            "leaderEpoch": self._epoch,
            "votedId": -1,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": self._node_id}],
            "data_version": 0,
        }
        self._disk.write_file(f"{self._directory}/{QUORUM_STATE}", json.dumps(state, separators=(",", ":")).encode())

    def _leader_change(self) -> tuple[bytes, bytes]:
        message = data("LeaderChangeMessage")
        voter = message.Voter(voter_id=self._node_id)
        change = message(version=0, leader_id=self._node_id, voters=[voter], granting_voters=[voter])
        return control_key(ControlRecordType.LEADER_CHANGE), encode_data("LeaderChangeMessage", 0, change)

    # Deciding

    async def decide(self, decision: Callable[[MetadataImage], tuple[list[MetadataRecord], T]]) -> T:
        records, answer = decision(self.tip)
        if records:
            try:
                self._append(records)
            except OSError as error:
                # What is in the log now is anybody's guess: nothing may be decided on it.
                self._on_failed(f"the metadata log could not be written: {error}")
                raise
            done = asyncio.get_running_loop().create_future()
            self._uncommitted.append(_Uncommitted(self._log.log_end_offset, self.tip, done))
            self._appended.set()
            # Others may wait for it too: whoever gives up waits no longer, but does not take it away from them.
            await asyncio.shield(done)
        elif self._uncommitted:
            # It may rest on decisions that are not committed yet: they go first.
            await asyncio.shield(self._uncommitted[-1].done)
        return answer

    def _append(self, records: Sequence[MetadataRecord]) -> None:
        level = self.tip.features.get("metadata.version", METADATA_VERSION_4_3)
        written: Sequence[MetadataRecord] = records
        if len(records) > BATCH_RECORDS_MAX:
            # Several batches take effect together or not at all.
            written = [BeginTransactionRecord(), *records, EndTransactionRecord()]
        for start in range(0, len(written), BATCH_RECORDS_MAX):
            part = written[start : start + BATCH_RECORDS_MAX]
            values = [(None, framing.encode(record, version_for(type(record), level))) for record in part]
            self._append_batch(values, control=False)
        self.tip = replay(self.tip, records, self._log.log_end_offset, self._epoch)

    def _append_batch(self, pairs: Iterable[tuple[bytes | None, bytes]], *, control: bool) -> None:
        now_ms = self._clock.wall_ms()
        builder = BatchBuilder()
        for key, value in pairs:
            builder.append(key, value, timestamp=now_ms)
        self._log.append_own(builder.build(control=control), self._epoch, now_ms)

    # Committing

    async def run(self, apply: Callable[[MetadataImage], Awaitable[None]]) -> None:
        """Commit what is appended and have it applied, for as long as the node lives. An OSError ends the node."""
        while True:
            await self._appended.wait()
            self._appended.clear()
            while self._uncommitted:
                await to_the_end(self._log.flush())
                await to_the_end(self._commit(apply))

    async def _commit(self, apply: Callable[[MetadataImage], Awaitable[None]]) -> None:
        committed = []
        while self._uncommitted and self._uncommitted[0].end_offset <= self._log.recovery_point:
            committed.append(self._uncommitted.popleft())
        if not committed:
            return
        self.committed = committed[-1].image
        await apply(self.committed)
        for entry in committed:
            if not entry.done.done():
                entry.done.set_result(None)

    def close(self) -> None:
        """Blocks."""
        self._log.close_clean()


def metadata_dir(log_dir: str) -> str:
    return f"{log_dir}/{names.partition_dir(names.CLUSTER_METADATA_TOPIC, 0)}"


def whole_transactions(records: Iterable[MetadataRecord]) -> list[MetadataRecord]:
    """Without the records of metadata transactions that were aborted or never ended."""
    kept: list[MetadataRecord] = []
    open_since: int | None = None
    for record in records:
        match record:
            case BeginTransactionRecord():
                open_since = len(kept)
            case EndTransactionRecord():
                open_since = None
            case AbortTransactionRecord():
                if open_since is not None:
                    del kept[open_since:]
                open_since = None
            case _:
                kept.append(record)
    if open_since is not None:
        del kept[open_since:]
    return kept


def ends_within_transaction(records: Sequence[MetadataRecord]) -> bool:
    marks = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
    last = next((record for record in reversed(records) if isinstance(record, marks)), None)
    return isinstance(last, BeginTransactionRecord)


def describe(image: MetadataImage) -> dict[str, Any]:
    """A few numbers for the start-up line."""
    partitions = sum(len(topic.partitions) for topic in image.topics.values())
    return {"topics": len(image.topics), "partitions": partitions, "metadata_offset": image.end_offset}
