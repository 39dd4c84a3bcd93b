"""This node's part in the quorum: the committed metadata on every node, and decisions on the active controller.

    quorum = Quorum(config, disk, clock, randomness, logger, peers, ...)
    await quorum.open()                          the snapshot, the log and the vote are loaded
    task = create_task(quorum.run(apply))        it takes part; `apply` is called with each newly committed image
    answer = await quorum.decide(decision)       on the active controller
    await quorum.resign_and_close()

Always true: the committed image is made of committed batches, each once and in order (D14). A decision sees all decisions
before it, committed or not, and is answered when its records are committed and applied here, or refused with NOT_CONTROLLER if
leadership goes first. This node is active once it has applied everything before the start of the epoch that it leads.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from typing import TypeVar, cast

from strandline.api.requests.slices import in_turns
from strandline.config.node import NodeConfig
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.log.errors import NotCached
from strandline.log.log import Log
from strandline.metadata import framing
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import (
    METADATA_VERSION_4_3,
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    version_for,
)
from strandline.node.logger import Logger
from strandline.node.peers import Peers
from strandline.node.quorum import batches
from strandline.node.quorum.driver import AnswerTo, Driver
from strandline.node.quorum.election_file import ElectionFile
from strandline.node.quorum.images import Decision, Images, LoadedSnapshot
from strandline.node.quorum.metadata_log import MetadataLog, metadata_dir
from strandline.node.quorum.opening import OpenedQuorum, open_all, own_endpoints, start_raft
from strandline.node.quorum.sending import RaftRequestSender
from strandline.node.quorum.snapshots import Snapshots
from strandline.node.quorum.snapshotting import SnapshotGenerator
from strandline.node.tasks import to_the_end
from strandline.ports import Clock, Disk
from strandline.raft import events
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import Address, Endpoints, OffsetAndEpoch, ReplicaKey, Request
from strandline.raft.raft import Raft
from strandline.raft.replicas import QuorumDescription
from strandline.raft.voters import VoterNode
from strandline.sliced_work import Work, finished

T = TypeVar("T")
Apply = Callable[[MetadataImage], Awaitable[None]]

Value = tuple[None, bytes]
"""Key and value of a record in the metadata log."""

BATCH_RECORDS_MAX = 10_000
"""In one batch of the metadata log; a larger decision is a metadata transaction of several."""
ATTEMPTS_MAX = 4
"""How often a decision in slices is made, because others were made meanwhile; the last time they wait."""
INLINE_RECORDS_MAX = 256
"""A decision with more records is written in slices."""
READ_BYTES = 1 << 20
"""Read of the log at once to be replayed."""
INLINE_BYTES_MAX = 1 << 16
"""A longer stretch of log is decoded beside the event loop."""
WORTH_A_SNAPSHOT_BYTES = 1 << 20
"""Of log that the next start would have to replay: a node that stops in order spares it that."""
HAND_OVER_S = 0.5
"""A leader that stops waits at most so long until the other voters know."""


class Quorum:
    def __init__(
        self,
        config: NodeConfig,
        disk: Disk,
        clock: Clock,
        randomness: random.Random,
        logger: Logger,
        peers: Peers,
        *,
        cluster_id: str,
        directory_id: Uuid,
        clean: bool,
        on_failed: Callable[[str], None],
        on_active: Callable[[int], Awaitable[None]],
        on_inactive: Callable[[], None],
        on_leader_changed: Callable[[], None],
        endpoints: Callable[[], Endpoints] | None = None,
    ) -> None:
        """`clean`: the metadata log dir was closed cleanly. `on_active` is called with the epoch when this node becomes the active
        controller, and what it decides comes before all other decisions. `endpoints` says where this
        controller listens when the quorum is opened, if that is not what the configuration says."""
        self.config = config
        self._on_active = on_active
        self._on_inactive = on_inactive
        self._on_leader_changed = on_leader_changed
        self._disk = disk
        self._clock = clock
        self._randomness = randomness
        self._logger = logger
        self._clean = clean
        self._on_failed = on_failed
        self._key = ReplicaKey(config.node_id, directory_id)
        self._endpoints = partial(own_endpoints, config) if endpoints is None else endpoints
        directory = metadata_dir(config.metadata_log_dir)
        self._election_file = ElectionFile(disk, directory)
        self._snapshots = Snapshots(disk, directory)
        self._log = MetadataLog(disk, directory, clock, self._snapshots)
        self._images = Images()
        self._snapshotting = SnapshotGenerator(config, disk, clock, logger, self._log, self._snapshots, self._images)
        self._driver = Driver(
            disk,
            clock,
            logger,
            self._log,
            self._snapshots,
            self._election_file,
            RaftRequestSender(peers, cluster_id, config.controller_quorum_request_timeout_ms / 1000),
            start_raft=self._start_raft,
            on_committed=self._note_committed,
            on_leader_changed=self._note_leader,
            on_progress=self._note_progress,
            on_snapshot=self._begin_at,
            on_failed=self._failed,
        )
        self._opened: OpenedQuorum
        self._is_open = False
        self._is_sound = False
        """The log is open, and nothing has failed."""
        self._high_watermark = 0
        self._committed = asyncio.Event()
        self._applied: MetadataImage
        """The image that the node has applied last."""
        self._progress = asyncio.Event()
        self._reading = asyncio.Lock()
        """Held while the log is read for replay, and while it is replaced."""
        self._deciding = asyncio.Lock()
        """Held while a decision is made and appended."""
        self._deciding_in_slices = asyncio.Lock()
        """Held by the one that is made in slices."""
        self._active_epoch: int | None = None
        self._activation: asyncio.Task[None] | None = None

    # Facts

    @property
    def raft(self) -> Raft:
        return self._driver.raft

    @property
    def log(self) -> Log:
        return self._log.log

    @property
    def committed(self) -> MetadataImage:
        return self._images.committed

    @property
    def tip(self) -> MetadataImage:
        """On the active controller, with what is decided and not committed yet; elsewhere the committed image."""
        return self._images.tip

    @property
    def _own(self) -> VoterNode:
        return VoterNode(self._key, self._endpoints())

    @property
    def is_open(self) -> bool:
        """The log is loaded: what the quorum knows can be read."""
        return self._is_open

    @property
    def has_begun(self) -> bool:
        """The log is loaded, and Raft has had its first event."""
        return self._is_open and self.raft.has_begun

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return self._log.latest_snapshot

    @property
    def pending_end(self) -> int:
        """Where the newest decision ends that is not answered yet; -1 if there is none."""
        decision = self._images.last_decision
        return -1 if decision is None else decision.end_offset

    @property
    def kraft_version(self) -> int:
        return self.raft.kraft_version

    @property
    def high_watermark(self) -> int:
        return self._high_watermark

    @property
    def is_active(self) -> bool:
        """This node leads, and has applied everything that came before its epoch."""
        if self._active_epoch is None or self._driver.is_closed:
            return False
        return self._active_epoch == _led_epoch(self.raft)

    @property
    def leader(self) -> tuple[int, int]:
        """The epoch, and the id of its leader, -1 if that is not known."""
        return self.raft.epoch, self.raft.leader_id

    def leader_address(self) -> Address | None:
        return self.raft.leader_address()

    def describe(self) -> QuorumDescription:
        return self.raft.describe(self._clock.monotonic())

    def check_invariants(self) -> None:
        """What must hold between two turns of the event loop; the simulator asks after each of them."""
        images, active_epoch = self._images, self._active_epoch
        images.check_invariants()
        assert images.position <= self._high_watermark, f"read {images.position} above {self._high_watermark}"
        assert images.has_tip == (active_epoch is not None), f"a tip, and active in epoch {active_epoch}"
        if active_epoch is not None and not self._driver.is_closed:
            assert self.is_active, f"active in epoch {active_epoch}, and {self.raft.role} in {self.raft.epoch}"

    # Taking part

    async def open(self) -> None:
        """Load what the disk has. StorageError if that can't be used."""
        self._opened = await self._disk.offload(self._open, self._log.directory)
        self._images.load(self._opened.loaded)
        self._high_watermark = self._log.floor = self._images.position
        self._driver.prepare(self._opened.election)
        self._is_open = self._is_sound = True

    def _open(self) -> OpenedQuorum:
        return open_all(
            self.config,
            self._log,
            self._snapshots,
            self._election_file,
            self._own,
            self._logger,
            clean=self._clean,
        )

    def _start_raft(self, election: ElectionState) -> Raft:
        return start_raft(self.config, self._own, self._log, self._opened, election, self._randomness)

    async def run(self, apply: Apply) -> None:
        """Take part, and have what is committed applied, for as long as the node lives."""
        self._applied = self.committed
        if self._images.position:
            await to_the_end(self._apply(apply))
        self._driver.begin()
        self._driver.spawn(self._snapshotting.run())
        while True:
            await self._committed.wait()
            self._committed.clear()
            await to_the_end(self._apply_committed(apply))

    def submit(self, request: Request, answer: AnswerTo) -> None:
        """Have Raft answer a request; `answer` is called once, perhaps before this returns."""
        self._driver.submit(request, answer)

    def cancel(self, answer: AnswerTo) -> None:
        """The sender of that request is gone."""
        self._driver.cancel(answer)

    def disconnected(self, node_id: int) -> None:
        """A connection with this node closed."""
        if node_id >= 0:
            self._driver.post(events.Disconnected(node_id))

    async def resign_and_close(self) -> None:
        """Hand over if we lead, take part no longer, and leave the log in order."""
        self._driver.post(events.Resign())
        await self._handed_over()
        await self._driver.close()
        self._deactivate_if_due()
        async with self._reading:
            if self._is_sound:
                self._is_sound = False
                if self._images.unsaved_bytes >= WORTH_A_SNAPSHOT_BYTES:
                    await to_the_end(self._snapshotting.take())
                await self._disk.offload(self._log.log.close_clean, self._log.directory)

    async def _handed_over(self) -> None:
        try:
            async with asyncio.timeout(HAND_OVER_S):
                while not (self._driver.is_closed or self.raft.has_handed_over):
                    self._progress.clear()
                    await self._progress.wait()
        except TimeoutError:
            pass

    def _failed(self, reason: str) -> None:
        self._is_sound = False
        self._deactivate_if_due()
        self._on_failed(reason)

    # What the driver reports

    def _note_committed(self, high_watermark: int) -> None:
        self._high_watermark = max(self._high_watermark, high_watermark)
        self._log.floor = self._high_watermark
        self._committed.set()

    def _note_leader(self) -> None:
        self._deactivate_if_due()
        self._on_leader_changed()

    def _note_progress(self) -> None:
        self._deactivate_if_due()
        self._progress.set()

    async def _begin_at(self, loaded: LoadedSnapshot) -> None:
        """A snapshot was fetched: the log begins anew at its end, and so does the image."""
        async with self._reading:
            self._log.log.truncate_fully_and_start_at(loaded.image.end_offset)
            self._images.load(loaded)
        self._note_committed(loaded.image.end_offset)

    # Deciding

    async def decide(
        self,
        decision: Callable[[MetadataImage], tuple[list[MetadataRecord], T] | Work[tuple[list[MetadataRecord], T]]],
    ) -> T:
        """Have `decision` make records and an answer from the tip; the answer comes when they are committed and applied here.
        What it raises is raised, and nothing is written. NOT_CONTROLLER if this node is not active, or not long enough.
        One that is a generator is made in slices. Others are made meanwhile, a broker's heartbeat for example; then it is made
        once more."""
        while self._activation is not None and self._activation is not asyncio.current_task():
            await asyncio.wait([self._activation])
        async with self._deciding:
            self._check_active()
            outcome = decision(self.tip)
            if not isinstance(outcome, Generator):
                records, answer = outcome
                done = await self._write(records)
        if isinstance(outcome, Generator):
            in_slices = cast(Callable[[MetadataImage], Work[tuple[list[MetadataRecord], T]]], decision)
            answer, done = await self._decide_in_slices(in_slices)
        if done is not None:
            # Others may wait for the same decision: a caller that gives up must not cancel it for them.
            await asyncio.shield(done)
        return answer

    async def _decide_in_slices(
        self, decision: Callable[[MetadataImage], Work[tuple[list[MetadataRecord], T]]]
    ) -> tuple[T, asyncio.Future[None] | None]:
        """One such decision at a time. It counts if nothing else was decided meanwhile; in the end nothing else is."""
        async with self._deciding_in_slices:
            for _ in range(ATTEMPTS_MAX - 1):
                self._check_active()
                tip = self.tip
                records, answer = await self._in_slices(decision(tip))
                async with self._deciding:
                    self._check_active()
                    if self.tip is tip:
                        return answer, await self._write(records)
            async with self._deciding:
                self._check_active()
                records, answer = await self._in_slices(decision(self.tip))
                return answer, await self._write(records)

    def _check_active(self) -> None:
        if not self.is_active:
            raise self._not_controller()

    async def _write(self, records: Sequence[MetadataRecord]) -> asyncio.Future[None] | None:
        """Append what was decided on the tip; what to wait for until it is committed. None: nothing."""
        if not records:
            # It may rest on decisions that are not committed yet: they go first.
            last = self._images.last_decision
            return None if last is None else last.done
        values = self._values(_framed(records))
        if len(records) <= INLINE_RECORDS_MAX:
            return self._append(records, finished(values))
        tip = self.tip
        encoded = await self._in_slices(values)
        assert self.tip is tip, "no other decision is made meanwhile"
        return self._append(records, encoded)

    async def _in_slices(self, work: Work[T]) -> T:
        """What the work returns; NOT_CONTROLLER if leadership goes meanwhile."""
        epoch = self._active_epoch

        def check() -> None:
            if not self.is_active or self._active_epoch != epoch:
                raise self._not_controller()

        return await in_turns(work, self._clock.monotonic, check)

    def _values(self, records: Sequence[MetadataRecord]) -> Work[list[Value]]:
        """The records as they are written."""
        level = self.tip.features.get("metadata.version", METADATA_VERSION_4_3)
        values: list[Value] = []
        for record in records:
            values.append((None, framing.encode(record, version_for(type(record), level))))
            yield 0
        return values

    def _append(self, records: Sequence[MetadataRecord], values: Sequence[Value]) -> asyncio.Future[None]:
        """Append records, which are written as these values."""
        start_offset, appended_bytes = self._log.end_offset, self._log.log.appended_bytes
        timestamp_ms = 0
        for start in range(0, len(values), BATCH_RECORDS_MAX):
            timestamp_ms = self._append_batch(values[start : start + BATCH_RECORDS_MAX])
        self._images.advance_tip(records, self._log.end_offset, self.raft.epoch)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_seen)
        size_bytes = self._log.log.appended_bytes - appended_bytes
        self._images.add(Decision(start_offset, self._log.end_offset, size_bytes, timestamp_ms, self.tip, done))
        self._driver.post(events.LeaderAppended(self._log.end_offset))
        return done

    def _append_batch(self, values: Sequence[Value]) -> int:
        """Its timestamp."""
        assert self._active_epoch == _led_epoch(self.raft), "only the active controller appends"
        try:
            return self._log.append(values, self.raft.epoch)
        except OSError as error:
            # What is in the log now is not known: nothing may be decided on it.
            self._driver.fail(error)
            raise self._not_controller() from None

    def _not_controller(self) -> KafkaError:
        epoch, leader_id = self.leader
        who = f"node {leader_id}" if leader_id >= 0 else "unknown"
        return KafkaError(ErrorCode.NOT_CONTROLLER, f"not the active controller: the leader of epoch {epoch} is {who}")

    # Applying

    async def _apply_committed(self, apply: Apply) -> None:
        done: list[Decision] = []
        is_behind = True
        while is_behind:
            async with self._reading:
                is_behind = not self._driver.is_closed and await self._replay_next(done)
        if self.committed is not self._applied:  # also after a snapshot was loaded
            await self._apply(apply)
        for decision in done:
            if not decision.done.done():
                decision.done.set_result(None)
        self._snapshotting.note_committed()
        self._activate_if_due()

    async def _apply(self, apply: Apply) -> None:
        self._applied = self.committed
        await apply(self._applied)

    async def _replay_next(self, done: list[Decision]) -> bool:
        """Replay the next decision, or a stretch of log that was not decided here; False if nothing more is committed."""
        images, limit_offset = self._images, self._high_watermark
        decision = images.next_decision
        if decision is not None and decision.start_offset == images.position:
            # Of one that takes several batches, some may be committed before the others.
            if decision.end_offset <= limit_offset:
                done.append(images.take())
                return True
            return False
        if decision is not None:
            limit_offset = min(limit_offset, decision.start_offset)
        if images.position >= limit_offset:
            return False
        images.replay(await self._read_committed(limit_offset))
        return True

    async def _read_committed(self, limit_offset: int) -> list[batches.MetadataBatch]:
        data = b""
        while not data:
            try:
                data = bytes(self._log.log.read(self._images.position, READ_BYTES, limit_offset, min_one=True))
            except NotCached as cold:
                await self._log.warm(cold)
        if len(data) <= INLINE_BYTES_MAX:
            return batches.read(data)
        return await self._disk.offload(lambda: batches.read(data), self._log.directory)

    # Being the active controller

    def _activate_if_due(self) -> None:
        raft, start_offset = self.raft, self.raft.epoch_start_offset
        if self._driver.is_closed or start_offset is None or self._active_epoch == raft.epoch:
            return
        # In an epoch of its own a leader knows its high watermark only when it is above the start.
        if raft.high_watermark is None or self._images.position <= start_offset:
            return
        self._active_epoch = raft.epoch
        self._images.begin_deciding(self._log.end_offset, raft.epoch)
        if self._images.is_within_transaction:
            # Else all that is decided from now on would belong to a transaction that never ends.
            self._append_batch(finished(self._values([AbortTransactionRecord(reason="its leader was lost")])))
            self._images.advance_tip((), self._log.end_offset, raft.epoch)
            self._driver.post(events.LeaderAppended(self._log.end_offset))
        self._activation = self._driver.spawn(self._activate(raft.epoch))

    async def _activate(self, epoch: int) -> None:
        try:
            await self._on_active(epoch)
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise
        finally:
            if self._activation is asyncio.current_task():
                self._activation = None

    def _deactivate_if_due(self) -> None:
        if self._active_epoch is None or self.is_active:
            return
        self._active_epoch = self._activation = None
        for decision in self._images.stop_deciding(self._high_watermark):
            if not decision.done.done():
                decision.done.set_exception(self._not_controller())
        self._committed.set()  # what is committed of those that are lost is read from the log now
        self._on_inactive()


def _framed(records: Sequence[MetadataRecord]) -> Sequence[MetadataRecord]:
    """Several batches take effect together or not at all."""
    if len(records) <= BATCH_RECORDS_MAX:
        return records
    return [BeginTransactionRecord(), *records, EndTransactionRecord()]


def _led_epoch(raft: Raft) -> int | None:
    """The epoch that this node leads."""
    return raft.epoch if raft.is_leader else None


def _seen(done: asyncio.Future[None]) -> None:
    """The caller of `decide` may be gone: then the outcome is never retrieved."""
    if not done.cancelled():
        done.exception()
