"""One node of a simulated cluster through all its lives: its machine, its process now, and what can be seen of it.

Always true: looking goes past the disk's faults and chances, so that a history is the same whether or not anybody looks.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from strandline.api.requests.request_stats import RequestStats
from strandline.config.node import NodeConfig
from strandline.histories.batches import Batch, LogReader, walk
from strandline.histories.sight import Seen
from strandline.ids import Uuid
from strandline.node.node import Node
from strandline.raft import election_state
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import OffsetAndEpoch
from strandline.raft.states import Leader
from strandline.sim.inode import Inode
from strandline.sim.world import SimNode

LOG_DIR = "/data"
METADATA_DIR = f"{LOG_DIR}/__cluster_metadata-0"
QUORUM_STATE = f"{METADATA_DIR}/quorum-state"


class Member:
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
        """In a dynamic quorum it is another replica since then, and no voter of the beginning."""
        self._state_read_at = -1
        self._is_state_rotten = False
        self._state_data: bytes | None = None
        self._looked_at: Node | None = None
        """Below what is found of it, and as it was at the last look."""
        self._core: Any = None
        self._log: Any = None
        self._images: Any = None
        self._seen: Seen | None = None
        self._state: Any = None
        self._committed: int | None = None
        self._led: Leader | None = None
        self._log_end = self._flushed = self._log_start = -1
        self._reader: LogReader | None = None
        self._durable: tuple[tuple[Inode, int, int], int, int] | None = None
        self._request_stats: list[RequestStats] = []
        """Of each life."""

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def is_started(self) -> bool:
        return self.is_up and self.starting is not None and self.starting.done()

    @property
    def is_cleaning(self) -> bool:
        """Some log is being compacted there."""
        server: Any = getattr(self.node, "broker_server", None)
        return server is not None and bool(server.cleaner._cleanings)

    def look(self) -> Seen | None:
        """As it is now; None while it is down or has not loaded its log. The same object as last time if nothing changed."""
        node = self.node
        if node is not self._looked_at:
            self._seen = self._core = None
            self._looked_at = node
        core = self._core
        if core is None:
            core = self._find_core()
            if core is None:
                return None
        # An epoch or a leader comes with a new state, voters come with a longer or shorter log.
        log, seen, state, image = self._log.log, self._seen, core.state, self._images.committed
        if (
            state is self._state
            and seen is not None
            and core.committed == self._committed
            and image is seen.image
            and log.log_end_offset == self._log_end
            and log.recovery_point == self._flushed
            and log.log_start_offset == self._log_start
            and (self._led is None or state.high_watermark == seen.high_watermark)
        ):
            return seen
        self._state, self._committed = state, core.committed
        self._led = state if isinstance(state, Leader) else None
        self._log_end, self._flushed, self._log_start = log.log_end_offset, log.recovery_point, log.log_start_offset
        pending = self._images.last_decision
        self._seen = Seen(
            self.life,
            type(state).__name__.lower(),
            core.epoch,
            core.leader_id,
            core.high_watermark,
            core.history.voters,
            log.log_start_offset,
            log.log_end_offset,
            log.recovery_point,
            image,
            -1 if pending is None else pending.end_offset,
            self._log.latest_snapshot,
        )
        return self._seen

    def _find_core(self) -> Any:
        """Raft itself, once this life has loaded its log and begun; it stays the same for the rest of it."""
        quorum: Any = getattr(self.node, "quorum", None)
        if quorum is None or not hasattr(quorum._driver, "raft") or not hasattr(quorum._log, "log"):
            return None
        if quorum.raft._core.announced[0] < 0:
            return None  # Raft is made, and has not begun
        self._core, self._log, self._images = quorum.raft._core, quorum._log, quorum._images
        assert self.node is not None
        self._request_stats.append(self.node._request_stats)
        return self._core

    def errors_told(self) -> Mapping[int, int]:
        told: Counter[int] = Counter()
        for stats in self._request_stats:
            for (_, code), count in stats.errors.items():
                told[code] += count
        return told

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

    # Storage

    def snapshots(self) -> list[OffsetAndEpoch]:
        names = self.machine.disk.peek_names(METADATA_DIR)
        stems = [name.removesuffix(".checkpoint") for name in names if name.endswith(".checkpoint")]
        pairs = [stem.partition("-") for stem in stems]
        return [OffsetAndEpoch(int(offset), int(epoch)) for offset, _, epoch in pairs if epoch.isdigit()]

    def durable_end(self) -> int:
        if self.node is None:
            return 0
        log = self.node.quorum.log
        end_offset = log.segments[0].base_offset
        for segment in log.segments:
            inode: Inode = segment.file.inode  # type: ignore[attr-defined]
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

    def batches(self, offset: int, limit_offset: int) -> Iterator[Batch]:
        if self.node is None:
            return iter(())
        log = self.node.quorum.log
        if self._reader is None or self._reader.log is not log:
            self._reader = LogReader(log)
        self._reader.read()
        return self._reader.between(offset, limit_offset)
