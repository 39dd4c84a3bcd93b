"""One node of a simulated cluster through all its lives: its machine, its process now, and what can be seen of it.

Always true: looking goes past the disk's faults and chances, so that a history is the same whether or not anybody looks.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator

from strandline.config.node import NodeConfig
from strandline.histories.sight import Batch, Seen
from strandline.ids import Uuid
from strandline.node.node import Node
from strandline.raft import election_state
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import OffsetAndEpoch
from strandline.records.header import LOG_OVERHEAD
from strandline.sim.world import SimNode

LOG_DIR = "/data"
METADATA_DIR = f"{LOG_DIR}/__cluster_metadata-0"

_BATCH = struct.Struct(">qiixIxxi")
"""Of a batch header: base offset, length, leader epoch, CRC, last offset delta."""


class Member:
    def __init__(self, node_id: int, machine: SimNode, config: NodeConfig) -> None:
        self.id = node_id
        self.machine = machine
        self.config = config
        self.is_up = False
        self.node: Node | None = None
        """Of this life, once its process has come so far."""
        self.life = 0
        self.starting: asyncio.Task[None] | None = None
        self.may_fail = False
        """Its disk was made to fail: giving up is what it should do."""
        self.failed: str | None = None
        self.was_wiped = False
        """In a dynamic quorum it is another replica since then, and no voter of the beginning."""
        self._state_read_at = -1

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def is_started(self) -> bool:
        return self.is_up and self.starting is not None and self.starting.done()

    def look(self) -> Seen | None:
        """As it is now; None while it is down or has not loaded its log."""
        quorum = getattr(self.node, "quorum", None)
        raft, log = getattr(quorum, "raft", None), getattr(quorum, "log", None)
        if quorum is None or raft is None or log is None:
            return None
        return Seen(
            self.life,
            str(getattr(raft.role, "name", raft.role)).lower(),
            raft.epoch,
            raft.leader_id,
            raft.high_watermark,
            raft.voters,
            log.log_start_offset,
            log.log_end_offset,
            log.recovery_point,
            quorum.committed,
        )

    def new_election_state(self) -> ElectionState | None:
        """What is on disk, if it was written since the last call."""
        changes = self.machine.disk.changes
        if changes == self._state_read_at:
            return None
        self._state_read_at = changes
        return self.election_state()

    @property
    def directory_id(self) -> Uuid:
        """Of the disk that it has now."""
        lines = (self.machine.disk.peek(f"{LOG_DIR}/meta.properties") or b"").decode().splitlines()
        return Uuid.parse(next(line.partition("=")[2] for line in lines if line.startswith("directory.id=")))

    # Storage

    def election_state(self) -> ElectionState | None:
        data = self.machine.disk.peek(f"{METADATA_DIR}/quorum-state")
        return None if data is None else election_state.decode(data)

    def snapshots(self) -> list[OffsetAndEpoch]:
        names = self.machine.disk.peek_names(METADATA_DIR)
        stems = [name.removesuffix(".checkpoint") for name in names if name.endswith(".checkpoint")]
        pairs = [stem.partition("-") for stem in stems]
        return [OffsetAndEpoch(int(offset), int(epoch)) for offset, _, epoch in pairs if epoch.isdigit()]

    def durable_end(self) -> int:
        if self.node is None:
            return 0
        end_offset = self.node.quorum.log.segments[0].base_offset
        for segment in self.node.quorum.log.segments:
            size = self.machine.disk.durable_size(segment.file.path)
            if size == len(segment.file.inode.data):
                end_offset = segment.next_offset
                continue
            for batch, end in _walk(segment.file.inode.data):
                if end > size:
                    break
                end_offset = batch.last_offset + 1
            break
        return end_offset

    def batches(self, offset: int, limit_offset: int) -> Iterator[Batch]:
        if self.node is None:
            return
        for segment in self.node.quorum.log.segments:
            if segment.next_offset <= offset or segment.base_offset >= limit_offset:
                continue
            for batch, _ in _walk(segment.file.inode.data):  # past the disk's faults and chances
                if batch.base_offset >= limit_offset:
                    return
                if batch.last_offset >= offset:
                    yield batch


def _walk(data: bytearray) -> Iterator[tuple[Batch, int]]:
    """The batches of a segment, and where each ends."""
    position = 0
    while position + _BATCH.size <= len(data):
        base_offset, length, epoch, crc, delta = _BATCH.unpack_from(data, position)
        position += LOG_OVERHEAD + length
        yield Batch(base_offset, base_offset + delta, epoch, crc), position
