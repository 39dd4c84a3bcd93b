"""A consumer's place in its group: heartbeats and rebalances beside the application, which is notified of changes
inside `poll`.

On asyncio the member's coroutine runs in the background. The blocking shell runs it while the caller is inside `poll`,
`commit` or any other call: between calls no heartbeat is sent, so who works longer than session_timeout_ms between two
polls is out.

Always true: the application's callbacks run inside its own `poll`, `unsubscribe` or `close`; what is to be given up is
committed first, if commits are automatic; automatic commits hold what the application was given before it came back to
poll, no more.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple

from strandline.client.config import ConsumerConfig
from strandline.client.core.backoff import Backoff, delay_s
from strandline.client.core.cluster_metadata import ClusterMetadata
from strandline.client.core.consumer import ConsumerCore
from strandline.client.core.group.classic_protocol import ClassicMemberCore
from strandline.client.core.group.consumer_protocol import ConsumerMemberCore
from strandline.client.core.group.coordinator import GONE
from strandline.client.core.group.member import AssignmentChange, AssignmentChangeKind, GroupCall, MemberCore
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.client.errors import ConnectionLost
from strandline.client.flow.client import FlowClient
from strandline.client.flow.coordinator_link import CoordinatorLink
from strandline.client.flow.io import Condition
from strandline.client.flow.offset_committer import OffsetCommitter
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition

Callback = Callable[[list[TopicPartition]], Awaitable[None] | None]
UNKNOWN_TOPIC = Backoff(100, 1_000)
"""How often a topic is asked for that no broker knows."""


class RebalanceCallbacks(NamedTuple):
    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    on_lost: Callback | None = None
    """None: on_revoked is called, as in Kafka."""

    def of(self, kind: AssignmentChangeKind) -> Callback | None:
        if kind is AssignmentChangeKind.ASSIGNED:
            return self.on_assigned
        return self.on_revoked if kind is AssignmentChangeKind.REVOKED or self.on_lost is None else self.on_lost


class GroupMembership:
    """`positions` are those that the application has reached; `changed` wakes a poll that waits."""

    def __init__(
        self,
        client: FlowClient,
        config: ConsumerConfig,
        core: ConsumerCore,
        positions: Callable[[], dict[TopicPartition, OffsetAndMetadata]],
        changed: Condition,
    ) -> None:
        assert config.group_id is not None
        self.member = _member(config, client.cluster, client)
        self._client = client
        self._io = client.io
        self._config = config
        self._core = core
        self._positions = positions
        self._changed = changed
        self._heard = Condition(client.io)
        """Something was heard of the coordinator, or the member changed."""
        self._wake = Condition(client.io)
        self._lane = client.new_lane()
        self._link = CoordinatorLink(client, config.group_id, self._wake.notify_all)
        self._committer = OffsetCommitter(client, config.group_id, self._link, self.member, self._wake, self._heard)
        self.commit = self._committer.commit
        self.committed = self._committer.committed
        self._callbacks = RebalanceCallbacks()
        self._is_running = False
        self._runs_count = 0
        """One coroutine after another; only the last counts."""
        self._is_refreshing = False
        self._refresh_at = 0.0
        self._refreshes_in_vain = 0
        """In a row."""
        self._asked_topics: frozenset[str] | None = frozenset()
        """The last time; None: all."""
        self._refreshed_at = float("-inf")
        self._auto_commit_at = float("inf")
        self._is_auto_committing = False
        self._is_notifying = False
        self._is_preparing = False
        self._prepared: AssignmentChange | None = None
        """What was committed for: it may be revoked now."""

    # What the application does

    def subscribe(self, topics: Collection[str], pattern: str | None, callbacks: RebalanceCallbacks) -> None:
        self.member.subscribe(topics, pattern, self._io.now())
        self._callbacks = callbacks
        if self._auto_commit_at == float("inf"):
            self.start_auto_commit()
        if not self._is_running:
            self._is_running = True
            self._runs_count += 1
            self._io.spawn(self._run(self._runs_count))
        self._wake.notify_all()

    def start_auto_commit(self) -> None:
        if self._config.enable_auto_commit:
            self._auto_commit_at = self._io.now() + self._config.auto_commit_interval_ms / 1000

    def poll_began(self) -> None:
        """All that was given to the application before this is done with: it may be committed."""
        if not self.member.is_active:
            self._wake.notify_all()
        self.member.poll_began()
        if self._io.now() >= self._auto_commit_at and not self._is_auto_committing:
            self._is_auto_committing = True
            self.start_auto_commit()
            self._io.spawn(self._auto_commit(self._positions()))

    def poll_ended(self) -> None:
        self.member.poll_ended(self._io.now())

    async def tell_changes(self, deadline: float) -> bool:
        """Notify the application of what changed. False: not yet all, the time is over.
        Raises what its callbacks raise.
        """
        while self._is_notifying or self.member.change() is not None:
            if self._io.now() >= deadline and (self._is_notifying or self._is_preparing):
                return False
            if self._is_notifying:
                await self._changed.wait(deadline - self._io.now())
                continue
            change = self.member.change()
            assert change is not None
            if (
                change.kind is AssignmentChangeKind.REVOKED
                and self._config.enable_auto_commit
                and self._prepared != change
            ):
                if not self._is_preparing:
                    self._is_preparing = True
                    self._io.spawn(self._prepare(change))
                await self._changed.wait(max(0.0, deadline - self._io.now()))
                continue
            await self._notify(change)
        error = self.member.error
        if error is not None:
            raise KafkaError(error.code, error.message)
        return True

    async def _prepare(self, change: AssignmentChange) -> None:
        """Commit before giving up. If that fails, others begin where the last commit was."""
        try:
            timeout_ms = min(self._config.max_poll_interval_ms, self._client.config.default_api_timeout_ms)
            await self.commit(self._positions(), timeout_ms)
        except KafkaError:
            pass
        finally:
            self._prepared = change
            self._is_preparing = False
            self._changed.notify_all()

    async def _notify(self, change: AssignmentChange) -> None:
        self._is_notifying = True
        try:
            if change.kind is AssignmentChangeKind.ASSIGNED:
                # Before it is notified, so that it can seek.
                self._apply(change)
            await self._call_back(change)
        finally:
            self._is_notifying = False
            if change.kind is not AssignmentChangeKind.ASSIGNED:
                self._apply(change)

    def _apply(self, change: AssignmentChange) -> None:
        self._prepared = None
        self.member.applied(change, self._io.now())
        self._core.assign(sorted(self.member.owned))
        self._wake.notify_all()
        self._changed.notify_all()

    async def _call_back(self, change: AssignmentChange) -> None:
        callback = self._callbacks.of(change.kind)
        if callback is not None:
            result = callback(list(change.partitions))
            if inspect.isawaitable(result):
                await result

    async def _auto_commit(self, positions: dict[TopicPartition, OffsetAndMetadata]) -> None:
        try:
            await self.commit(positions, max(self._config.auto_commit_interval_ms, self._config.request_timeout_ms))
        except KafkaError:
            pass  # the next one says the same and more; what the member has to know is in the answer
        finally:
            self._is_auto_committing = False

    # Leaving

    async def leave(self, timeout_s: float) -> None:
        """Commit if that is automatic, notify the application, and leave the group;
        an error of its callback is raised at the end.
        """
        deadline = self._io.now() + timeout_s
        member = self.member
        positions = self._positions()
        if self._config.enable_auto_commit and positions:
            # If it fails, those who go on begin where the last commit was.
            await self._within(timeout_s, self.commit(positions, max(1, round(timeout_s * 1000))))
        if not member.is_subscribed:
            return
        try:
            if member.owned:
                is_lost = member.change() is not None and member.generation < 0
                kind = AssignmentChangeKind.LOST if is_lost else AssignmentChangeKind.REVOKED
                await self._notify(AssignmentChange(kind, tuple(sorted(member.owned))))
        finally:
            self._is_running = False
            member.is_subscribed = False
            self._auto_commit_at = float("inf")
            call = member.leave()
            member.applied(AssignmentChange(AssignmentChangeKind.LOST, tuple(sorted(member.owned))), self._io.now())
            # What waits there, a JoinGroup perhaps, is not waited for.
            self._client.close_lane(self._lane)
            self._wake.notify_all()
            if call is not None:
                # If it does not arrive, the coordinator will notice when the session is over.
                good_bye = self._link.request(
                    call.api_key,
                    call.message,
                    timeout_ms=call.timeout_ms,
                    deadline=self._io.now() + call.timeout_ms / 1000,
                )
                await self._within(deadline - self._io.now(), good_bye)

    async def _within(self, timeout_s: float, work: Awaitable[object]) -> None:
        """Wait for it no longer than that: what is under way before it may take longer.
        Whether it failed does not matter.
        """
        ended = Condition(self._io)

        async def run() -> None:
            try:
                await work
            except KafkaError:
                pass
            finally:
                ended.notify_all()

        self._io.spawn(run())
        await ended.wait(timeout_s)

    def close(self) -> None:
        self._is_running = False
        self._wake.notify_all()
        self._link.close()

    # The member's coroutine

    async def _run(self, run: int) -> None:
        while self._is_current(run):
            member = self.member
            if member.is_active and self._link.node_id is None:
                await self._find(run)
                continue
            now = self._io.now()
            self._refresh_if_due(now)
            call = member.plan(now)
            if call is not None:
                await self._send(call, run)
            else:
                wakeup = min(member.wakeup(), self._refresh_due())
                await self._wake.wait(None if wakeup == float("inf") else wakeup - now)

    def _is_current(self, run: int) -> bool:
        return self._is_running and run == self._runs_count and not self._client.is_closed

    async def _find(self, run: int) -> None:
        try:
            await self._link.find()
        except KafkaError as error:
            if self._is_current(run):
                self._fail(error)
        else:
            if self._is_current(run):
                self.member.coordinator_found(self._io.now())

    async def _send(self, call: GroupCall, run: int) -> None:
        member, now = self.member, self._io.now
        try:
            answer = await self._link.request(
                call.api_key, call.message, timeout_ms=call.timeout_ms, deadline=float("inf"), lane=self._lane
            )
        except ConnectionLost:
            if self._is_current(run):
                member.lost(call, now())
        except KafkaError as error:
            if self._is_current(run):
                self._fail(error)
        else:
            if self._is_current(run):
                code = member.answered(call, answer.message, now())
                if code in GONE:
                    self._link.gone(answer.node_id)
                elif code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    self._link.serves()
        self._heard.notify_all()
        self._changed.notify_all()

    def _fail(self, error: KafkaError) -> None:
        self.member.failed(error)
        self._heard.notify_all()
        self._changed.notify_all()

    # Metadata

    def _refresh_due(self) -> float:
        if self._is_refreshing or not self.member.is_active:
            return float("inf")
        wanted, asked = self._wanted_topics(), self._asked_topics
        if asked is not None and (wanted is None or not wanted <= asked):
            return 0.0 if not self._refreshes_in_vain else self._refresh_at
        if self.member.lacks_topics:
            return self._refresh_at
        return max(self._refresh_at, self._refreshed_at + self._client.config.metadata_max_age_ms / 1000)

    def _wanted_topics(self) -> frozenset[str] | None:
        return None if self.member.wants_all_topics else self.member.wanted_topics

    def _refresh_if_due(self, now: float) -> None:
        if self._refresh_due() <= now:
            self._is_refreshing = True
            self._io.spawn(self._refresh(self._wanted_topics()))

    async def _refresh(self, topics: frozenset[str] | None) -> None:
        try:
            await self._client.refresh(topics, allow_auto_topic_creation=self._config.allow_auto_create_topics)
        except KafkaError:
            self._refreshes_in_vain += 1
        else:
            self._refreshed_at = self._io.now()
            self._asked_topics = topics
            self.member.refreshed(topics)
            self._refreshes_in_vain = self._refreshes_in_vain + 1 if self.member.lacks_topics else 0
        finally:
            self._refresh_at = self._io.now() + delay_s(UNKNOWN_TOPIC, self._refreshes_in_vain, self._client.randomness)
            self._is_refreshing = False
            self._wake.notify_all()
            self._changed.notify_all()


def _member(config: ConsumerConfig, cluster: ClusterMetadata, client: FlowClient) -> MemberCore:
    make = ConsumerMemberCore if config.group_protocol == "consumer" else ClassicMemberCore
    return make(config, cluster, client.config.retry_backoff, client.randomness)
