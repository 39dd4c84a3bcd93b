"""Repair of corrupt batches: what rotted on this node's disk is fetched from another replica and put in its place.

Replicas have the same bytes at the same offsets, so an ordinary Fetch of a consumer brings what was here; a follower
serves it as well as the leader, below its own high watermark (KIP-392).

Always true: of a segment in which damage was found nothing is served but what was checked since; a partition is
repaired by one task at a time, one stretch after the other; what no peer can give is asked for again, ever more rarely;
each stretch is reported once when it is found and once when it is whole again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.log.errors import CorruptBatch
from strandline.log.repairing import DoesNotFit, distrust, is_damaged, repair
from strandline.node.log_effects import perform
from strandline.node.logger import Logger
from strandline.node.peers import Peers
from strandline.node.tasks import to_the_end
from strandline.ports import Clock
from strandline.raft.messages import Address
from strandline.records.header import iterate
from strandline.replica.partition import Partition
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.fetch import FetchRequest, FetchResponse

FETCH: Final = 1
PURPOSE = "repair"
MORE_BYTES = 64 * 1024
"""To ask for at least, where a replica may have more for the same offsets."""
TIMEOUT_S = 30.0
RETRY_MIN_S, RETRY_MAX_S = 1.0, 300.0
AT_ONCE_MAX = 2
"""Repairs under way on a node: each holds a stretch in memory and writes a whole segment."""
STRETCH_BYTES_MAX = 64 * 1024 * 1024
"""What is larger is no rotten batch but a lost file: another replica should be made instead."""
STRETCHES_MAX = 1000
"""Known of one partition. A disk that rots faster is found again by its readers."""

Stretch = tuple[int, int, int, int]


class Note(Protocol):
    def __call__(self, kind: str, partition: Partition, reason: str, **facts: object) -> None: ...


class Repair:
    def __init__(
        self,
        node_id: int,
        peers: Peers,
        listener: str,
        address_of: Callable[[int], Address | None],
        clock: Clock,
        note: Note,
        on_storage_error: Callable[[Partition, OSError], None],
        logger: Logger,
    ) -> None:
        """`listener` is the name of the inter-broker listener, `address_of` where a broker has it."""
        self.corrupt_batches = 0
        """Stretches found, and repaired, since the node started."""
        self.repaired_batches = 0
        self._node_id = node_id
        self._peers = peers
        self._listener = listener
        self._address_of = address_of
        self._clock = clock
        self._note = note
        self._on_storage_error = on_storage_error
        self._logger = logger
        self._known: dict[Partition, dict[Stretch, CorruptBatch]] = {}
        self._tasks: dict[Partition, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE_MAX)
        self._is_closed = False

    def damaged(self, partition: Partition, error: CorruptBatch) -> None:
        """A corrupt batch was met; called as often as that happens."""
        distrust(partition.log, error)
        if self._is_closed or partition.gone or partition.offline:
            return
        known = self._known.setdefault(partition, {})
        if error.stretch not in known and len(known) < STRETCHES_MAX:
            known[error.stretch] = error
            self.corrupt_batches += 1
            self._note(
                "corrupt batch",
                partition,
                error.reason,
                first_offset=error.first_offset,
                last_offset=error.end_offset - 1,
                segment=error.segment_base_offset,
                position=error.position,
                bytes=error.end_position - error.position,
            )
            if not self._others(partition):
                self._logger.error(
                    "a corrupt batch can't be repaired: this is the only replica",
                    partition=str(partition),
                    first_offset=error.first_offset,
                    last_offset=error.end_offset - 1,
                )
        if partition not in self._tasks and self._others(partition):
            self._tasks[partition] = asyncio.get_running_loop().create_task(self._work(partition))

    def unrepaired(self, partition: Partition) -> list[CorruptBatch]:
        return list(self._known.get(partition, {}).values())

    def forget(self, partition: Partition) -> None:
        """The partition is gone from this node."""
        self._known.pop(partition, None)
        task = self._tasks.pop(partition, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        self._is_closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, partition: Partition) -> None:
        """Until nothing is left to repair, or no replica to ask."""
        known = self._known[partition]
        wait_s = RETRY_MIN_S
        try:
            while known and self._others(partition) and not (partition.gone or partition.offline):
                for stretch, error in list(known.items()):
                    async with self._turns:
                        is_done = await self._repair(partition, error)
                    if is_done:
                        del known[stretch]
                        wait_s = RETRY_MIN_S
                if known:
                    await asyncio.sleep(wait_s)
                    wait_s = min(2 * wait_s, RETRY_MAX_S)
        except OSError as failure:
            self._on_storage_error(partition, failure)
        finally:
            if self._tasks.get(partition) is asyncio.current_task():
                del self._tasks[partition]
            if not known:
                self._known.pop(partition, None)

    def _others(self, partition: Partition) -> list[int]:
        """Who may have it: the leader first, then those in sync, then the rest."""
        state = partition.state
        ranked = dict.fromkeys((state.leader, *state.isr, *state.replicas))
        return [broker for broker in ranked if broker >= 0 and broker != self._node_id]

    async def _repair(self, partition: Partition, error: CorruptBatch) -> bool:
        """Ask one after the other; True if the stretch needs no more care."""
        if not await to_the_end(perform(is_damaged(partition.log, error))):
            return True
        reasons = []
        if error.end_position - error.position > STRETCH_BYTES_MAX:
            reasons.append(f"{error.end_position - error.position} bytes are too many to fetch at once")
        for broker in self._others(partition) if not reasons else ():
            try:
                data = await self._fetch(broker, partition, error)
                # What was begun ends, or two tasks would write the same files.
                repaired = await to_the_end(perform(repair(partition.log, error, data, self._clock.wall_ms())))
            except (KafkaError, DoesNotFit) as refused:
                reasons.append(f"broker {broker}: {refused}")
                continue
            if repaired:
                self.repaired_batches += 1
                self._note(
                    "batch repaired",
                    partition,
                    f"fetched from broker {broker}",
                    first_offset=error.first_offset,
                    last_offset=error.end_offset - 1,
                    broker=broker,
                )
            return True
        self._logger.warning(
            "a corrupt batch could not be repaired yet",
            partition=str(partition),
            first_offset=error.first_offset,
            reasons=reasons,
        )
        return False

    async def _fetch(self, broker: int, partition: Partition, error: CorruptBatch) -> bytes:
        """The batches of the stretch as that broker has them; KafkaError if it has not."""
        address = self._address_of(broker)
        if address is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "it is not registered")
        peer = self._peers.connection(broker, address, PURPOSE, listener=self._listener)
        size = error.end_position - error.position
        fetched, offset = b"", error.first_offset
        # A replica that was cleaned less has more bytes for the same offsets.
        is_compacted = partition.log.config.compact
        while len(fetched) < size or (is_compacted and offset < error.end_offset):
            left = max(size - len(fetched), MORE_BYTES if is_compacted else 0)
            reply = await peer.ask(FETCH, _question(partition, offset, left), TIMEOUT_S)
            records = _records(reply, partition)
            headers = [header for _, header in iterate(records)]
            if not headers:
                break
            fetched += records[: sum(header.size_bytes for header in headers)]
            offset = headers[-1].next_offset
        return fetched


def _question(partition: Partition, offset: int, max_bytes: int) -> FetchRequest:
    """As a consumer asks, without a session and without waiting."""
    request = messages.request(FETCH)
    wanted = request.FetchPartition(
        partition=partition.index, fetch_offset=offset, partition_max_bytes=max_bytes, current_leader_epoch=-1
    )
    return request(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=max_bytes,
        session_id=0,
        session_epoch=-1,
        topics=[request.FetchTopic(topic_id=partition.topic_id, partitions=[wanted])],
    )


def _records(reply: FetchResponse, partition: Partition) -> bytes:
    """The records of the answer; KafkaError if it is a refusal."""
    code = error_code(reply.error_code)
    answers = [answer for topic in reply.responses for answer in topic.partitions]
    if code is ErrorCode.NONE and answers:
        code = error_code(answers[0].error_code)
    if code is not ErrorCode.NONE or not answers:
        raise KafkaError(code if code is not ErrorCode.NONE else ErrorCode.UNKNOWN_SERVER_ERROR, "it does not serve it")
    return bytes(answers[0].records or b"")
