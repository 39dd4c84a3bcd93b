"""The brokers and controllers on a stage: what each holds now, whether it runs or not.

Always true: reading a node draws no random number and changes nothing; a node that is down shows only what its disk has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from strandline.histories.member import LOG_DIR, METADATA_DIR, ClusterMember
from strandline.log.checkpoints import REPLICATION_OFFSET_CHECKPOINT
from strandline.metadata import framing
from strandline.metadata.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from strandline.node.observation.replicas import ObservedReplica
from strandline.ports import Buffer
from strandline.records.batch import decode
from strandline.records.control import read_control_type
from strandline.records.errors import CorruptRecord
from strandline.records.header import BatchHeader, crc_valid, iterate
from strandline.sim.context import ProcessState

BROKER_RECORDS = (RegisterBrokerRecord, BrokerRegistrationChangeRecord, UnregisterBrokerRecord)


class LoggedRecord(NamedTuple):
    """A record in a log."""

    offset: int
    name: str
    epoch: int


class StageNode:
    """One node by its name on the stage. A partition is 0 unless another is asked for."""

    def __init__(self, name: str, member: ClusterMember, topic: str) -> None:
        self.name = name
        self.member = member
        self.topic = topic

    @property
    def id(self) -> int:
        return self.member.id

    @property
    def host(self) -> str:
        return self.member.name

    @property
    def is_up(self) -> bool:
        return self.member.is_up

    @property
    def is_paused(self) -> bool:
        return self.member.machine.process.state is ProcessState.PAUSED

    # The topic

    def replica(self, partition: int = 0) -> ObservedReplica | None:
        """The running replica; None while the broker is down or has not opened its logs."""
        observed = self.member.observed
        return None if observed is None else observed.replica(self.topic, partition)

    @property
    def is_back(self) -> bool:
        """It runs, and its replica has a role."""
        return self.replica() is not None

    @property
    def leads(self) -> bool:
        replica = self.replica()
        return replica is not None and replica.leads

    @property
    def epoch(self) -> int:
        replica = self.replica()
        return -1 if replica is None else replica.leader_epoch

    @property
    def end(self) -> int:
        """The log end offset."""
        return self.end_of(0)

    @property
    def high_watermark(self) -> int:
        return self.high_watermark_of(0)

    @property
    def log_start(self) -> int:
        replica = self.replica()
        return 0 if replica is None else replica.log.log_start_offset

    @property
    def names(self) -> list[str]:
        """The messages of its log, in order."""
        return [held.name for held in self.held()]

    def end_of(self, partition: int) -> int:
        replica = self.replica(partition)
        if replica is not None:
            return replica.log.log_end_offset
        held = list(self._on_disk(f"{LOG_DIR}/{self.topic}-{partition}"))
        return held[-1].offset + 1 if held else 0

    def high_watermark_of(self, partition: int) -> int:
        replica = self.replica(partition)
        return self.checkpoint(partition) if replica is None else replica.high_watermark

    def last_stable_of(self, partition: int) -> int | None:
        """None where it is the high watermark."""
        replica = self.replica(partition)
        if replica is None or replica.last_stable_offset >= replica.high_watermark:
            return None
        return replica.last_stable_offset

    def checkpoint(self, partition: int = 0) -> int:
        """The high watermark that `replication-offset-checkpoint` has."""
        written = self.member.machine.disk.peek(f"{LOG_DIR}/{REPLICATION_OFFSET_CHECKPOINT}") or b""
        for line in written.decode().splitlines()[2:]:
            topic, index, offset = line.rsplit(" ", 2)
            if (topic, int(index)) == (self.topic, partition):
                return int(offset)
        return 0

    def held(self, partition: int = 0) -> list[LoggedRecord]:
        replica = self.replica(partition)
        start, end = (0, None) if replica is None else (replica.log.log_start_offset, replica.log.log_end_offset)
        on_disk = self._on_disk(f"{LOG_DIR}/{self.topic}-{partition}")
        return [held for held in on_disk if held.offset >= start and (end is None or held.offset < end)]

    # The metadata log

    @property
    def quorum_role(self) -> str:
        """As Raft has it: leader, follower, candidate, prospective, unattached, observer …; "" while it does not run."""
        seen = self.member.look()
        return "" if seen is None else seen.role

    @property
    def quorum_epoch(self) -> int:
        seen = self.member.look()
        return -1 if seen is None else seen.epoch

    @property
    def metadata_end(self) -> int:
        seen = self.member.look()
        if seen is not None:
            return seen.log_end_offset
        held = self.metadata_held()
        return held[-1].offset + 1 if held else 0

    @property
    def metadata_high_watermark(self) -> int | None:
        seen = self.member.look()
        return None if seen is None else seen.high_watermark

    @property
    def metadata_start(self) -> int:
        seen = self.member.look()
        return 0 if seen is None else seen.log_start_offset

    def metadata_held(self) -> list[LoggedRecord]:
        start = self.metadata_start
        return [held for held in self._on_disk(METADATA_DIR, is_metadata=True) if held.offset >= start]

    @property
    def snapshots(self) -> list[int]:
        """The end offsets of the snapshots on its disk."""
        return sorted(snapshot.offset for snapshot in self.member.snapshots())

    # The disk

    def _on_disk(self, directory: str, *, is_metadata: bool = False) -> Iterator[LoggedRecord]:
        disk = self.member.machine.disk
        for name in disk.peek_names(directory):
            if name.endswith(".log"):
                yield from _records(disk.peek(f"{directory}/{name}") or b"", is_metadata)


def _records(data: bytes, is_metadata: bool) -> Iterator[LoggedRecord]:
    for batch, header in _batches(data):
        for record in decode(batch):
            if header.is_control:
                name = "".join(word.capitalize() for word in read_control_type(record.key).name.split("_"))
            elif is_metadata:
                name = _named(framing.decode(record.value or b"")[0])
            else:
                name = name_of(record.key, record.value)
            yield LoggedRecord(record.offset, name, header.partition_leader_epoch)


def name_of(key: Buffer | None, value: Buffer | None) -> str:
    """What a message is called: its value is its name."""
    if value is None:
        return "" if key is None else tombstone(bytes(key).decode())
    return bytes(value).decode()


def tombstone(key: str) -> str:
    """What a message without a value is called."""
    return f"{key}=null"


def _named(record: MetadataRecord) -> str:
    """Its kind, and of which broker or topic it speaks."""
    kind = type(record).__name__.removesuffix("Record")
    if isinstance(record, TopicRecord):
        return f"{kind} {record.name}"
    if isinstance(record, BROKER_RECORDS):
        return f"{kind} {record.broker_id}"
    return kind


def _batches(data: bytes) -> Iterator[tuple[bytes, BatchHeader]]:
    """The valid ones: a power loss may have torn the last."""
    try:
        for position, header in iterate(data):
            batch = data[position : position + header.size_bytes]
            if not crc_valid(batch):
                return
            yield batch, header
    except CorruptRecord:
        return
