"""One node of a simulated cluster through all its lives: its machine, its process now, and what can be seen of it.

Always true: looking goes past the disk's faults and chances, so that a history is the same whether or not it is
observed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping

from strandline.config.node import NodeConfig
from strandline.histories.batches import LoggedBatch, LogReader, inode_of, walk
from strandline.histories.quorum_observation import QuorumNodeState
from strandline.ids import Uuid
from strandline.node.node import Node
from strandline.node.observation.logs import ObservedLog
from strandline.node.observation.node import NodeObservation
from strandline.node.observation.quorum import ObservedQuorum, QuorumMark
from strandline.raft import election_state
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import OffsetAndEpoch
from strandline.sim.context import ProcessState
from strandline.sim.inode import Inode
from strandline.sim.world import SimNode

LOG_DIR = "/data"
METADATA_DIR = f"{LOG_DIR}/__cluster_metadata-0"
QUORUM_STATE = f"{METADATA_DIR}/quorum-state"


class ClusterMember:
    def __init__(self, node_id: int, machine: SimNode, config: NodeConfig) -> None:
        self.id = node_id
        self.machine = machine
        self.config = config
        self.pauses = 0
        """How often it was paused."""
        self.is_up = False
        self.node: Node | None = None
        """Of this life, once its process has come so far."""
        self.life = 0
        self.starting: asyncio.Task[None] | None = None
        self.may_fail = False
        """Its disk was made to fail: giving up is what it should do."""
        self.failed: str | None = None
        self.was_wiped = False
        """In a dynamic quorum it is another replica since then, and none of the initial voters."""
        self._state_read_at = -1
        self._is_state_rotten = False
        self._state_data: bytes | None = None
        self.observed: NodeObservation | None = None
        """What can be seen of the node."""
        self._looked_at: NodeObservation | None = None
        """Below what is found of it, and as it was at the last look."""
        self._quorum: ObservedQuorum | None = None
        self._mark: QuorumMark | None = None
        self._seen: QuorumNodeState | None = None
        self._reader: LogReader | None = None
        self._durable: tuple[tuple[Inode, int, int], int, int] | None = None
        self._lives: list[NodeObservation] = []
        """Of each life that took part in the quorum."""

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def is_started(self) -> bool:
        return self.is_up and self.starting is not None and self.starting.done()

    @property
    def is_running(self) -> bool:
        """Its process is there, and is not paused."""
        return self.is_up and self.machine.process.state is ProcessState.RUNNING

    @property
    def is_cleaning(self) -> bool:
        """Some log is being compacted there."""
        return self.observed is not None and self.observed.is_cleaning

    def look(self) -> QuorumNodeState | None:
        """As it is now; None while it is down or has not loaded its log. The same object as last time if nothing
        changed."""
        observed = self.observed
        if observed is not self._looked_at:
            self._seen = self._quorum = None
            self._looked_at = observed
        quorum = self._quorum
        if quorum is None:
            if observed is None or (quorum := observed.quorum) is None:
                return None
            self._quorum = quorum
            self._lives.append(observed)
        elif self._mark is not None and quorum.is_as(self._mark):
            return self._seen
        self._mark = mark = quorum.mark()
        self._seen = QuorumNodeState(
            self.life,
            quorum.role.lower(),
            quorum.epoch,
            quorum.leader_id,
            mark.high_watermark,
            quorum.voters,
            mark.log_start_offset,
            mark.log_end_offset,
            mark.flushed_offset,
            mark.image,
            quorum.pending_end,
            quorum.latest_snapshot,
        )
        return self._seen

    def error_counts(self) -> Mapping[int, int]:
        counts: Counter[int] = Counter()
        for observed in self._lives:
            for (_, code), count in observed.errors.items():
                counts[code] += count
        return counts

    def lost_its_disk(self) -> None:
        self.was_wiped = True
        self._is_state_rotten = False
        self._state_data = None

    def vote_rotted(self) -> None:
        """Its `quorum-state` can't be read any more."""
        self._is_state_rotten = True

    def new_election_state(self) -> ElectionState | None:
        """What is on disk, if it was written since the last call; None too if it has rotted and can't be read."""
        changes = self.machine.disk.changes
        if changes == self._state_read_at:
            return None
        self._state_read_at = changes
        data = self.machine.disk.peek(QUORUM_STATE)
        if data is None or data == self._state_data:
            return None
        self._state_data = data
        try:
            return election_state.decode(data)
        except election_state.MalformedState:
            if not self._is_state_rotten:
                raise
            return None

    @property
    def directory_id(self) -> Uuid:
        """Of the disk that it has now."""
        lines = (self.machine.disk.peek(f"{LOG_DIR}/meta.properties") or b"").decode().splitlines()
        return Uuid.parse(next(line.partition("=")[2] for line in lines if line.startswith("directory.id=")))

    def check_invariants(self) -> None:
        """Of what it keeps of the quorum."""
        if self._quorum is not None:
            self._quorum.check_invariants()

    # Storage

    def snapshots(self) -> list[OffsetAndEpoch]:
        names = self.machine.disk.peek_names(METADATA_DIR)
        stems = [name.removesuffix(".checkpoint") for name in names if name.endswith(".checkpoint")]
        pairs = [stem.partition("-") for stem in stems]
        return [OffsetAndEpoch(int(offset), int(epoch)) for offset, _, epoch in pairs if epoch.isdigit()]

    @property
    def _log(self) -> ObservedLog | None:
        """The metadata log."""
        quorum = None if self.observed is None else self.observed.quorum
        return None if quorum is None else quorum.log

    def durable_end(self) -> int:
        if self._log is None:
            return 0
        log = self._log
        end_offset = log.segments[0].base_offset
        for segment in log.segments:
            inode = inode_of(segment)
            size = self.machine.disk.durable_size(segment.file.path)
            if size != len(inode.data):
                return self._durable_within(inode, size, end_offset, log.truncations)
            end_offset = segment.next_offset
        return end_offset

    def _durable_within(self, inode: Inode, size: int, end_offset: int, truncations: int) -> int:
        """The end of the batches that lie within the first `size` bytes; they are walked over once."""
        position = 0
        # A kill leaves the file, and the next life counts its own truncations.
        whose = (inode, self.life, truncations)
        if self._durable is not None and self._durable[0] == whose and self._durable[1] <= size:
            _, position, end_offset = self._durable
        for batch, end in walk(inode.data, position):
            if end > size:
                break
            position, end_offset = end, batch.last_offset + 1
        self._durable = (whose, position, end_offset)
        return end_offset

    def batches(self, offset: int, limit_offset: int) -> Iterator[LoggedBatch]:
        log = self._log
        if log is None:
            return iter(())
        if self._reader is None or self._reader.log is not log:
            self._reader = LogReader(log)
        self._reader.read()
        return self._reader.between(offset, limit_offset)
