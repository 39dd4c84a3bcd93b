"""A member of the group: an application on a host of its own that polls, works, and commits what it has worked on.

It may be killed and started again, stand still, or leave and join.

Always true: it commits no more than it was given and has noted; what callbacks report is noted as it comes.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from strandline.client.aio import Consumer, ConsumerConfig
from strandline.client.core.group.member import GroupMetadata
from strandline.errors import ErrorCode, KafkaError
from strandline.histories.clients.connecting import REQUEST_TIMEOUT_MS, connect
from strandline.histories.groups.plan import CLASSIC
from strandline.ids import TopicPartition
from strandline.sim.world import SimNode

if TYPE_CHECKING:
    from strandline.histories.groups.load import GroupLoad

POLL_S = 5.0
MAX_WAIT_MS = 4_000
COMMIT_WITHIN_MS = 8_000
COMMIT_SHARE, COMMIT_SHARE_CALM = 0.7, 0.4
"""So often it commits after it was given something."""
AUTO_COMMIT_MS = 2_000
CLOSE_S = 10.0
AGAIN_S = 1.0
METADATA_AGE_MS = 10_000
FENCED = frozenset({ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID})

REFUSED = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
"""What a commit may be answered once the group has gone on without the member."""


class GroupMember:
    def __init__(self, group: GroupLoad, machine: SimNode, number: int) -> None:
        self.name = machine.name
        self.machine = machine
        self.life = 0
        self.protocol = group.plan.protocol
        """Of its next life."""
        self.is_wanted = False
        """As the operator would have it: a member of the group, and not about to leave."""
        self.is_fenced = False
        """Its instance id is another's, or still its own of an earlier life: it begins anew after a while."""
        self.topics = group.topics
        self._group = group
        self._instance_id = f"instance-{number}" if group.plan.is_static else None
        self._chance = random.Random(f"{machine.world.seed}/{machine.name}")
        self._consumer: Consumer | None = None
        self._task: asyncio.Task[None] | None = None
        self._unsaved: dict[TopicPartition, int] = {}
        """What it was given and has not committed."""

    # What the operator does

    def start(self) -> None:
        """A new life, if it has none now."""
        self.is_wanted = True
        if self.is_running:
            return
        if not self.machine.alive:
            self.machine.restart()
        self.life += 1
        self.is_fenced = False
        self._consumer = None
        self._unsaved = {}
        self._task = self.machine.spawn(self._run(self.life))

    def kill(self) -> None:
        self.machine.kill()
        self._consumer = self._task = None
        self._group.history.note_gone(self.name, self.life, self.owned)

    async def leave(self) -> None:
        """In order; it may take as long as a poll does."""
        self.is_wanted = False
        if self._task is not None and self.machine.alive:
            await asyncio.wait([self._task])

    @property
    def is_running(self) -> bool:
        return self.machine.alive and self._task is not None and not self._task.done()

    # What can be seen

    @property
    def owned(self) -> list[TopicPartition]:
        """As its application knows it."""
        return self._group.history.held(self.name, self.life)

    @property
    def generation(self) -> int:
        """Or member epoch; -1 if it is none."""
        return -1 if self._consumer is None else self._consumer.group_metadata().generation_id

    @property
    def metadata(self) -> GroupMetadata | None:
        """Its identity for its coordinator, if it is a member."""
        return None if self._consumer is None else self._consumer.group_metadata()

    @property
    def has_unsaved(self) -> bool:
        return bool(self._unsaved)

    # What it does

    async def _run(self, life: int) -> None:
        group = self._group
        async with connect(self.machine, group.shape, metadata_max_age_ms=METADATA_AGE_MS) as client:
            while self.is_wanted:
                self.is_fenced = False
                consumer = self._consumer = Consumer(client, self._config())
                self._subscribe(consumer, life)
                while not self._is_over():
                    if self.topics != group.topics:
                        self._subscribe(consumer, life)
                    await self._work(consumer, life)
                self._consumer = None
                await consumer.close(CLOSE_S)
                self._unsaved.clear()
                if self.is_wanted:
                    await asyncio.sleep(AGAIN_S)

    def _is_over(self) -> bool:
        return self.is_fenced or not self.is_wanted

    def _subscribe(self, consumer: Consumer, life: int) -> None:
        history, name = self._group.history, self.name
        self.topics = self._group.topics

        def on_assigned(keys: list[TopicPartition]) -> None:
            history.note_assigned(name, life, keys, consumer.group_metadata().generation_id)
            self._group.note(name, f"has {_text(keys)} more, generation {consumer.group_metadata().generation_id}")

        def on_gone(keys: list[TopicPartition]) -> None:
            history.note_gone(name, life, keys)
            for key in keys:
                self._unsaved.pop(key, None)
            self._group.note(name, f"gives up {_text(keys)}")

        def on_lost(keys: list[TopicPartition]) -> None:
            on_gone(keys)
            self._group.count("partitions lost")

        consumer.subscribe(self.topics, on_assigned=on_assigned, on_revoked=on_gone, on_lost=on_lost)

    async def _work(self, consumer: Consumer, life: int) -> None:
        group = self._group
        try:
            records = await consumer.poll(POLL_S)
        except KafkaError as error:
            self._failed("polls", error)
            await asyncio.sleep(0.2)
            return
        group.load.operations += 1
        for record in records:
            key = (record.topic, record.partition)
            if not group.history.note_given(self.name, life, key, record.offset, record.value or b""):
                group.load.problem("given-unassigned", f"{self.name} was given {record.topic}-{record.partition}")
            self._unsaved[key] = record.offset + 1
        if not self._group.plan.auto_commit:
            if self._unsaved and self._is_time_to_commit(bool(records)):
                await self._commit(consumer)
        elif not records:
            self._unsaved.clear()

    def _is_time_to_commit(self, has_more: bool) -> bool:
        """Now and then; and always when there is nothing else to do."""
        share = COMMIT_SHARE if self._group.load.is_brisk else COMMIT_SHARE_CALM
        return not has_more or self._chance.random() < share

    async def _commit(self, consumer: Consumer) -> None:
        offsets = dict(self._unsaved)
        self._group.load.operations += 1
        try:
            await consumer.commit(offsets, timeout_ms=COMMIT_WITHIN_MS)
        except KafkaError as error:
            self._failed("commits", error)
            return
        self._group.history.note_committed(offsets)
        for key, offset in offsets.items():
            if self._unsaved.get(key) == offset:
                del self._unsaved[key]

    def _failed(self, what: str, error: KafkaError) -> None:
        self._group.load.note_error(error)
        if error.code in FENCED and self._instance_id is not None:
            self.is_fenced = True
        elif not error.retriable and error.code not in REFUSED:
            self._group.load.problem("unexpected-error", f"{self.name} {what}: {error!r}")

    def _config(self) -> ConsumerConfig:
        plan = self._group.plan
        is_classic = self.protocol == CLASSIC
        assignor = self._group.assignor(self.protocol)
        return ConsumerConfig(
            group_id=plan.group_id,
            group_instance_id=self._instance_id,
            group_protocol="classic" if is_classic else "consumer",
            group_remote_assignor=None if is_classic else assignor,
            partition_assignment_strategy=(assignor,) if is_classic else ("range",),
            session_timeout_ms=plan.session_ms,
            heartbeat_interval_ms=plan.heartbeat_ms,
            max_poll_interval_ms=4 * plan.session_ms,
            enable_auto_commit=plan.auto_commit,
            auto_commit_interval_ms=AUTO_COMMIT_MS,
            allow_auto_create_topics=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=MAX_WAIT_MS,
            request_timeout_ms=max(REQUEST_TIMEOUT_MS, MAX_WAIT_MS + 1_000),
        )


def _text(keys: list[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in keys) or "nothing"
