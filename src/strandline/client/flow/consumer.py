"""The consumer, of partitions that were assigned by hand or by its group: it fetches ahead while the application works.

    consumer.subscribe(["topic"])       # as a member of group_id; or consumer.assign([("topic", 0)])
    for record in await consumer.poll(timeout_s=1.0): ...

Always true: a poll that finds records returns at once; whatever changes what there is to do, be it an answer, another
task's seek or a new leader that was learnt of, wakes a poll that waits; at most one Fetch per node is in flight, on a
lane of its own, so that a Fetch that waits for records does not delay questions about offsets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping

from strandline.client.config import CLOSE_TIMEOUT_S, ConsumerConfig
from strandline.client.core.cluster_metadata import NO_EPOCH
from strandline.client.core.completed_fetch import ConsumerRecord
from strandline.client.core.consumer import FETCH, ConsumerCore, FetchCall
from strandline.client.core.group.member import GroupMetadata
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.client.core.positions import PartitionState, PositionState
from strandline.client.errors import Closed, ConnectionLost, OffsetOutOfRange
from strandline.client.flow import offsets
from strandline.client.flow.client import FETCHING, FlowClient
from strandline.client.flow.group import Callback, GroupMembership, RebalanceCallbacks
from strandline.client.flow.io import Condition, sleep
from strandline.client.flow.offsets import OffsetAndTimestamp
from strandline.client.flow.retry import Answers
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition

IDLE_S = 0.1
"""How often a poll that waits looks whether a partition may go on."""
ERRAND_TIMEOUT_MS = 5_000
ITERATE_S = 1.0


class FlowConsumer:
    def __init__(self, client: FlowClient, config: ConsumerConfig | None = None) -> None:
        self._client = client
        self._io = client.io
        config = config or ConsumerConfig()
        self._core = ConsumerCore(config, client.cluster, client.config.retry_backoff, client.randomness)
        self._changed = Condition(self._io)
        self._group = None
        if config.group_id is not None:
            self._group = GroupMembership(client, config, self._core, self._consumed, self._changed)
        self._ungiven: deque[ConsumerRecord] = deque()
        """Taken by an iteration, and not yet given to the application."""
        self._is_closed = False
        self._is_refreshing = False
        self._asking: set[TopicPartition] = set()

    # Assignment and positions

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Consume exactly these, from where they are, from what the group committed, or as auto_offset_reset says."""
        if self._group is not None:
            if self._group.member.is_subscribed:
                raise ValueError("the group assigns the partitions; unsubscribe before you do")
            self._group.start_auto_commit()
        self._core.assign(partitions)
        self._changed.notify_all()

    def assignment(self) -> list[TopicPartition]:
        return sorted(self._core.partitions)

    def seek(self, topic: str, partition: int, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Go on from this offset; the epoch of the record before it lets truncation be noticed."""
        if offset < 0:
            raise ValueError(f"an offset is at least 0, not {offset}")
        self._core.state(topic, partition).seek(offset, leader_epoch)
        self._drop_ungiven({(topic, partition)})
        self._changed.notify_all()

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        self._reset(partitions, offsets.EARLIEST)

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        self._reset(partitions, offsets.LATEST)

    def _reset(self, partitions: Iterable[TopicPartition] | None, timestamp: int) -> None:
        wanted = list(self._core.partitions if partitions is None else partitions)
        for topic, partition in wanted:
            self._core.state(topic, partition).reset(timestamp)
        self._drop_ungiven(set(wanted))
        self._changed.notify_all()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        for topic, partition in partitions:
            self._core.state(topic, partition).is_paused = True
        self._changed.notify_all()

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for topic, partition in partitions:
            self._core.state(topic, partition).is_paused = False
        self._changed.notify_all()

    def paused(self) -> list[TopicPartition]:
        return sorted(key for key, state in self._core.partitions.items() if state.is_paused)

    async def position(self, topic: str, partition: int) -> int:
        """The offset of the next record, asking the leader if it is not known yet."""
        state = self._core.state(topic, partition)
        while state.state in (PositionState.FINDING, PositionState.RESETTING) and not self._is_closed:
            find = self._find_committed if state.state is PositionState.FINDING else self._find_positions
            await find([state], self._client.config.default_api_timeout_ms)
        if state.state is PositionState.UNSET:
            raise OffsetOutOfRange(topic, partition, None)
        return next((record.offset for record in self._ungiven if record[:2] == state.key), state.position)

    def high_watermark(self, topic: str, partition: int) -> int | None:
        """What the last fetch said."""
        high_watermark = self._core.state(topic, partition).high_watermark
        return None if high_watermark < 0 else high_watermark

    # The group

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | None = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """As a member of the group, to these topics, or to all whose whole name matches the pattern (RE2) now or later.

        The callbacks get the partitions that were assigned, are about to be given up, or are gone (on_revoked if there
        is no on_lost). They run inside `poll`, and may be coroutine functions on asyncio. Replaces an earlier
        subscription.
        """
        named = frozenset([topics] if isinstance(topics, str) else topics)
        if bool(named) == (pattern is not None):
            raise ValueError("subscribe to topics or to a pattern, and to one of the two")
        group = self._require_group()
        if self._core.partitions and not group.member.is_subscribed:
            raise ValueError("partitions were assigned by hand; assign none before you subscribe")
        group.subscribe(named, pattern, RebalanceCallbacks(on_assigned, on_revoked, on_lost))

    async def unsubscribe(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Leave the group, or drop what was assigned by hand."""
        if self._group is not None:
            await self._group.leave(timeout_s)
        self._core.assign(())
        self._changed.notify_all()

    def subscription(self) -> list[str]:
        """Topics; with a pattern, those that are known to match it."""
        return sorted(self._group.member.topics) if self._group and self._group.member.is_subscribed else []

    def group_metadata(self) -> GroupMetadata:
        return self._require_group().member.metadata

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None, timeout_ms: int | None = None
    ) -> None:
        """These offsets (of the next record to consume), or the positions: all that was given so far.
        KafkaError if refused.
        """
        group = self._require_group()
        if offsets is None:
            await group.commit(self._consumed(), timeout_ms)
        else:
            named = {k: OffsetAndMetadata(o) if isinstance(o, int) else o for k, o in offsets.items()}
            await group.commit(named, timeout_ms)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group committed last; None where it did not."""
        return await self._require_group().committed(partitions, timeout_ms)

    def _require_group(self) -> GroupMembership:
        if self._is_closed:
            raise Closed("consumer")
        if self._group is None:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the consumer has no group_id")
        return self._group

    def _consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Positions as the application sees them: what an iteration took and has not given yet is before it."""
        positions = {
            key: OffsetAndMetadata(state.position, state.consumed_epoch)
            for key, state in self._core.partitions.items()
            if state.has_position
        }
        for record in reversed(self._ungiven):
            if record[:2] in positions:
                positions[record[:2]] = OffsetAndMetadata(record.offset)
        return positions

    # Offsets

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._offsets_at(partitions, offsets.EARLIEST)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The high watermark, or the last stable offset for a read_committed reader."""
        return await self._offsets_at(partitions, offsets.LATEST)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each timestamp; None where there is none."""
        found = offsets.values(await self._list_offsets(timestamps))
        return {key: None if offset.offset < 0 else offset for key, offset in found.items()}

    async def _offsets_at(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        found = offsets.values(await self._list_offsets(offsets.all_at(partitions, timestamp)))
        return {key: offset.offset for key, offset in found.items()}

    async def _list_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> Answers[OffsetAndTimestamp]:
        return await offsets.list_offsets(
            self._client, timestamps, read_committed=self._core.config.is_read_committed, timeout_ms=timeout_ms
        )

    # Records

    async def poll(self, timeout_s: float = 0.0, records_max: int | None = None) -> list[ConsumerRecord]:
        """Records, or none when the time is over. Errors that the application must know of are raised here."""
        if self._group is None:
            return await self._poll(timeout_s, records_max)
        if self._is_closed:
            raise Closed("consumer")
        self._group.poll_began()
        try:
            return await self._poll(timeout_s, records_max)
        finally:
            self._group.poll_ended()

    async def _poll(self, timeout_s: float, records_max: int | None) -> list[ConsumerRecord]:
        records_max = self._core.config.max_poll_records if records_max is None else records_max
        deadline = self._io.now() + timeout_s
        while True:
            if self._is_closed:
                raise Closed("consumer")
            if self._group is not None and not await self._group.tell_changes(deadline):
                return []
            if self._ungiven and (given := self._take_ungiven(records_max)):
                return given
            # Fetch first, then decode: the broker works meanwhile.
            self._start_errands()
            taken = self._core.take(records_max)
            if taken:
                self._start_errands()
                return taken
            left_s = deadline - self._io.now()
            if left_s <= 0:
                return []
            # Without partitions only the group can bring something to do, and it wakes this.
            is_idle = self._core.is_all_asked or (self._group is not None and not self._core.partitions)
            await self._wait(left_s if is_idle else min(left_s, IDLE_S))

    async def _wait(self, timeout_s: float) -> None:
        on_new_leader = self._client.cluster.on_new_leader
        on_new_leader.append(self._changed.notify_all)
        try:
            await self._changed.wait(timeout_s)
        finally:
            on_new_leader.remove(self._changed.notify_all)

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Every record, for ever, until the consumer is closed."""
        while not self._is_closed:
            await self.take_to_give()
            while self._ungiven:
                yield self._ungiven.popleft()

    async def take_to_give(self) -> deque[ConsumerRecord]:
        """For an iteration: it takes one after another from the left,
        and what it leaves is not committed but polled again.
        """
        if not self._ungiven:
            self._ungiven.extend(await self.poll(ITERATE_S))
        return self._ungiven

    def _take_ungiven(self, records_max: int) -> list[ConsumerRecord]:
        taken: list[ConsumerRecord] = []
        while self._ungiven and len(taken) < records_max:
            record = self._ungiven.popleft()
            if record[:2] in self._core.partitions:
                taken.append(record)
        return taken

    def _drop_ungiven(self, partitions: set[TopicPartition]) -> None:
        if self._ungiven:
            self._ungiven = deque(record for record in self._ungiven if record[:2] not in partitions)

    async def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """A member of a group commits, if that is automatic, and leaves (a static one stays,
        as it is expected back).
        """
        if self._group is not None and not self._is_closed:
            try:
                await self._group.leave(timeout_s)
            finally:
                self._group.close()
        self._is_closed = True
        self._core.assign(())
        self._changed.notify_all()

    def _start_errands(self) -> None:
        core, now = self._core, self._io.now()
        unknown = {topic for topic, _ in core.partitions} - self._client.cluster.topics.keys()
        core.wants_topics |= unknown
        for call in core.plan(now):
            self._io.spawn(self._fetch(call))
        if core.wants_topics and not self._is_refreshing:
            self._is_refreshing = True
            self._io.spawn(self._refresh())
        for states, ask in (
            (core.finding(now), self._find_committed),
            (core.resetting(now), self._find_positions),
            (core.validating(now), self._validate),
        ):
            new = [state for state in states if state.key not in self._asking]
            if new:
                self._asking.update(state.key for state in new)
                self._io.spawn(self._run_errand(ask(new, ERRAND_TIMEOUT_MS), new))

    async def _fetch(self, call: FetchCall) -> None:
        try:
            response = await self._client.request(
                call.node_id,
                FETCH,
                call.message,
                timeout_ms=self._core.config.request_timeout_ms + self._core.config.fetch_max_wait_ms,
                version_max=call.version_max,
                lane=FETCHING,
            )
        except ConnectionLost:
            self._core.lost(call, self._io.now())
        except KafkaError as error:
            self._core.refused(call, error)
        else:
            self._core.answered(call, response, self._io.now())
        if not self._is_closed and not self._client.is_closed:
            self._start_errands()
        self._changed.notify_all()

    async def _refresh(self) -> None:
        topics = set(self._core.wants_topics)
        self._core.wants_topics.clear()
        try:
            await self._client.refresh(topics)
        except KafkaError:
            self._core.wants_topics |= topics
            await sleep(self._io, IDLE_S)
        else:
            if not topics <= self._client.cluster.topics.keys():
                await sleep(self._io, IDLE_S)
        finally:
            self._is_refreshing = False
            self._changed.notify_all()

    async def _find_committed(self, states: list[PartitionState], timeout_ms: int) -> None:
        assert self._group is not None
        incarnations = [state.incarnation for state in states]
        try:
            committed = await self._group.committed([state.key for state in states], timeout_ms)
        except KafkaError as error:
            if not error.retriable:
                raise
            for state in states:
                state.retry_at = self._io.now() + IDLE_S
            return
        for state, incarnation in zip(states, incarnations, strict=True):
            found = committed[state.key]
            if state.incarnation != incarnation:
                continue
            if found is None:
                self._core.reset(state)
            else:
                state.seek(found.offset, found.leader_epoch)

    async def _find_positions(self, states: list[PartitionState], timeout_ms: int) -> None:
        incarnations = [state.incarnation for state in states]
        answers = await self._list_offsets({s.key: s.reset_timestamp for s in states}, timeout_ms)
        for state, incarnation in zip(states, incarnations, strict=True):
            answer = answers[state.key]
            if state.incarnation != incarnation:
                continue
            if isinstance(answer, KafkaError):
                if not answer.retriable:
                    raise answer
                state.retry_at = self._io.now() + IDLE_S
            else:
                state.found(answer.offset, answer.leader_epoch)

    async def _validate(self, states: list[PartitionState], timeout_ms: int) -> None:
        asked = [(state.incarnation, state.fetch_offset) for state in states]
        answers = await offsets.offsets_for_leader_epochs(
            self._client, {s.key: s.last_epoch for s in states}, timeout_ms=timeout_ms
        )
        for state, asked_of in zip(states, asked, strict=True):
            answer = answers[state.key]
            # A Fetch that was under way may have moved the position meanwhile: of that one the answer says nothing.
            if (state.incarnation, state.fetch_offset) != asked_of or state.state is not PositionState.VALIDATING:
                continue
            if isinstance(answer, KafkaError):
                if not answer.retriable:
                    raise answer
                state.retry_at = self._io.now() + IDLE_S
            else:
                self._core.validated(state, answer.leader_epoch, answer.end_offset)

    async def _run_errand(self, errand: Awaitable[None], states: list[PartitionState]) -> None:
        try:
            await errand
        except KafkaError as error:
            self._core.report(error)
        finally:
            self._asking.difference_update(state.key for state in states)
            self._changed.notify_all()
