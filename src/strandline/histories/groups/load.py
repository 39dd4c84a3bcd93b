"""The members of the group as part of the load, and a client that asks now and then what the group has committed.

Always true: at the end all faults are undone, and the group owns every partition of its topics once and has committed all
of them to their ends, within a bounded virtual time.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from strandline.api.groups.placement import partition_of
from strandline.client.aio import Admin, AsyncClient
from strandline.client.core.group.commits import OFFSET_COMMIT, commit_question
from strandline.client.core.group.member import GroupMetadata
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.client.flow.descriptions import ConfigResource, ResourceType
from strandline.config.alter import Alteration, Op
from strandline.errors import KafkaError
from strandline.histories.clients.connecting import connect
from strandline.histories.coverage import GROUP
from strandline.histories.groups.history import GroupHistory
from strandline.histories.groups.member import GroupMember
from strandline.histories.groups.plan import CLASSIC, COOPERATIVE_STICKY, GROUPED, UNIFORM, GroupPlan
from strandline.ids import TopicPartition
from strandline.node.coordinator.offsets_topic import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from strandline.histories.load import Load

AUDIT_PAUSE_S, BRISK_AUDIT_PAUSE_S = (5.0, 15.0), (0.3, 2.0)
AUDIT_PATIENCE_MS = 6_000
OFFSETS_CONFIGS = {"internal.segment.bytes": "2048", "min.cleanable.dirty.ratio": "0.2"}


class GroupLoad:
    def __init__(self, load: Load, plan: GroupPlan) -> None:
        world = load.cluster.world
        self.load = load
        self.plan = plan
        self.shape = load.cluster.shape
        self.topics: tuple[str, ...] = (GROUPED,)
        """What all of them subscribe to."""
        self.history = GroupHistory(lambda: world.now)
        self.members = [GroupMember(self, world.node(f"member-{n}"), n) for n in range(1, plan.members + 1)]
        self._auditor = world.node("auditor")
        self._auditing: asyncio.Task[None] | None = None
        self._chance = random.Random(f"{world.seed}/auditor")

    @property
    def hosts(self) -> list[str]:
        return [*(member.name for member in self.members), self._auditor.name]

    def start(self) -> None:
        for member in self.members:
            member.start()
        self._auditing = self._auditor.spawn(self._audit())

    def heal(self) -> None:
        """Every member that should run does, and none is paused."""
        for member in self.members:
            member.machine.resume()
            if member.is_wanted and not member.is_running:
                member.start()

    def add(self) -> GroupMember:
        """One more, who has not joined yet."""
        number = len(self.members) + 1
        member = GroupMember(self, self.load.cluster.world.node(f"member-{number}"), number)
        member.protocol = self.members[0].protocol
        self.members.append(member)
        return member

    def note(self, who: str, what: str) -> None:
        self.load.cluster.transcript.note(who, what)

    def count(self, what: str) -> None:
        self.load.coverage.note(GROUP, what)

    def assignor(self, protocol: str) -> str:
        """As planned; one that changes its protocol takes the one that is like it."""
        if protocol == self.plan.protocol or self.plan.assignor not in (UNIFORM, COOPERATIVE_STICKY):
            return self.plan.assignor
        return COOPERATIVE_STICKY if protocol == CLASSIC else UNIFORM

    # What becomes of it

    @property
    def wanted(self) -> list[GroupMember]:
        return [member for member in self.members if member.is_wanted]

    def keys(self) -> list[TopicPartition]:
        """All partitions that it should own."""
        topics = self.load.observed.image.topics
        return [
            (name, index) for name in self.topics if name in topics for index in range(len(topics[name].partitions))
        ]

    def is_settled(self) -> bool:
        """Every client that should be is a member of the same generation, and every partition has one owner."""
        wanted = self.wanted
        owned = sorted(key for member in wanted for key in member.owned)
        generations = {member.generation for member in wanted}
        return bool(wanted) and len(generations) == 1 and min(generations) >= 0 and owned == sorted(self.keys())

    def is_caught_up(self) -> bool:
        """All that is committed of the partitions was given to the group, and committed by it."""
        if not self.is_settled() or any(member.has_unsaved for member in self.wanted):
            return False
        ends = {key: self.load.observed.committed_end(*key) for key in self.keys()}
        if self.plan.auto_commit:  # what was committed, the offsets themselves say, once all have left
            return all(self.history.given_to(key) >= end for key, end in ends.items())
        return all(self.history.committed.get(key, 0) >= end for key, end in ends.items())

    def describe(self) -> str:
        parts = [
            f"{m.name} {'' if m.is_running else 'down '}generation {m.generation} has {m.owned}" for m in self.wanted
        ]
        ends = {key: self.load.observed.committed_end(*key) for key in self.keys()}
        return "; ".join([*parts, f"committed {self.history.committed} of {ends}"])

    async def stop(self) -> None:
        """Every member leaves; what the group has committed then is final."""
        if self._auditing is not None:
            self._auditing.cancel()
        for member in self.members:
            await member.leave()
        self.history.final = await self._auditor.spawn(self._ask_last())

    async def commit_as(self, who: GroupMetadata, keys: list[TopicPartition], offset: int) -> None:
        """A client that takes itself for this member commits, whatever became of the member. Whether that is taken is judged."""
        named = {key: OffsetAndMetadata(offset) for key in keys}
        ids = {topic: self.load.observed.image.topics[topic].topic_id for topic, _ in keys}
        newest = self.load.observed.image.topics[CONSUMER_OFFSETS].partitions
        leader = newest[partition_of(self.plan.group_id, len(newest))].leader

        async def run() -> None:
            async with connect(self._auditor, self.shape, patience_ms=AUDIT_PATIENCE_MS) as client:
                await client.ensure_known()
                await client.request(leader, OFFSET_COMMIT, commit_question(who, named, ids))

        try:
            await self._auditor.spawn(run())
        except KafkaError as error:
            self.load.note_error(error)

    # The auditor

    async def _audit(self) -> None:
        if self.load.keyed is not None:
            await self._shrink_segments()
        async with connect(self._auditor, self.shape, patience_ms=AUDIT_PATIENCE_MS) as client:
            while True:
                pause_s = self._chance.uniform(*(BRISK_AUDIT_PAUSE_S if self.load.is_brisk else AUDIT_PAUSE_S))
                await self.load.rest(pause_s)
                try:
                    await self._ask(client)
                except KafkaError as error:
                    self.load.note_error(error)

    async def _shrink_segments(self) -> None:
        """So that the cleaner finds something in the offsets topic too."""
        if not await self.load.cluster.comes_true(lambda: CONSUMER_OFFSETS in self.load.observed.image.topics, 60.0):
            return
        resource = ConfigResource(ResourceType.TOPIC, CONSUMER_OFFSETS)
        alterations = [Alteration(name, Op.SET, value) for name, value in OFFSETS_CONFIGS.items()]
        try:
            async with connect(self._auditor, self.shape, patience_ms=AUDIT_PATIENCE_MS) as client:
                await Admin(client).alter_configs({resource: alterations})
        except KafkaError as error:
            self.load.note_error(error)

    async def _ask_last(self) -> dict[TopicPartition, int]:
        async with connect(self._auditor, self.shape) as client:
            return await self._ask(client)

    async def _ask(self, client: AsyncClient) -> dict[TopicPartition, int]:
        """What the group has committed. The answer is judged as it leaves its coordinator."""
        self.load.operations += 1
        answer = (await Admin(client).list_group_offsets({self.plan.group_id: None}))[self.plan.group_id]
        if isinstance(answer, KafkaError):
            raise answer
        found = {key: each for key, each in answer.items() if each is not None and not isinstance(each, KafkaError)}
        return {key: each.offset for key, each in found.items()}
