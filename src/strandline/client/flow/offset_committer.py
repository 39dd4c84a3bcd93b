"""Commits of a consumer, and the committed offsets that it asks for.

Always true: commits reach the coordinator one after another in the order in which they were asked for, so that one that
is tried again never undoes a later one; each carries the generation or epoch that the member has when it is sent, but
nothing is sent after the member gave up or lost what it owned meanwhile; the ids of its topics are those of when it was
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from strandline.client.core.backoff import delay_s
from strandline.client.core.group import commits
from strandline.client.core.group.commits import OFFSET_COMMIT, OFFSET_FETCH, CommitVerdict, TopicIds
from strandline.client.core.group.member import NO_GENERATION, NO_MEMBER, GroupMetadata, MemberCore
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.client.errors import Closed, ConnectionLost, TimedOut
from strandline.client.flow.client import FlowClient
from strandline.client.flow.coordinator_link import CoordinatorLink
from strandline.client.flow.io import Condition, FifoLock, sleep
from strandline.client.flow.retry import UNKNOWN_ATTEMPTS_MAX
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition

UNKNOWN = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
EPOCH_WAIT_S = 1.0
"""How long to wait for the heartbeat that brings the new epoch, before trying again anyway."""

Committed = dict[TopicPartition, OffsetAndMetadata | None]


class OffsetCommitter:
    """`changed` is set whenever the member may have changed; `wake` makes it look for something to do."""

    def __init__(
        self,
        client: FlowClient,
        group_id: str,
        link: CoordinatorLink,
        member: MemberCore,
        wake: Condition,
        changed: Condition,
    ) -> None:
        self._client = client
        self._io = client.io
        self._group_id = group_id
        self._link = link
        self._member = member
        self._wake = wake
        self._changed = changed
        self._lock = FifoLock(client.io)

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: int | None = None) -> None:
        """KafkaError if not all of them could be committed."""
        deadline = self._deadline(timeout_ms)
        ids = self._ids(offsets)
        left = dict(offsets)
        departures = self._member.departures
        async with self._lock:
            failures = 0
            while left:
                stamp = self._stamp(departures)
                code = await self._try(stamp, left, ids, deadline)
                if code is ErrorCode.NONE:
                    continue
                failures += 1
                if self._io.now() >= deadline or (code in UNKNOWN and failures >= UNKNOWN_ATTEMPTS_MAX):
                    raise KafkaError(code, f"committing offsets of group '{self._group_id}'")
                await self._see_to(code, stamp, failures, deadline)

    async def _try(
        self,
        stamp: GroupMetadata,
        left: dict[TopicPartition, OffsetAndMetadata],
        ids: TopicIds,
        deadline: float,
    ) -> ErrorCode:
        """What is committed is taken out of `left`; NONE, or the first code that says why something is not."""
        version_max = commits.version_max({topic for topic, _ in left}, ids)
        try:
            answer = await self._link.request(
                OFFSET_COMMIT,
                commits.commit_question(stamp, left, ids),
                timeout_ms=self._client.config.request_timeout_ms,
                deadline=deadline,
                version_max=version_max,
            )
        except ConnectionLost as error:
            return error.code
        refused = ErrorCode.NONE
        for key, code in commits.commit_answers(answer.message, ids).items():
            if code is ErrorCode.NONE:
                left.pop(key, None)
            elif refused is ErrorCode.NONE:
                refused = code
        if commits.judge(refused) is CommitVerdict.FIND:
            self._link.gone(answer.node_id)
        elif refused is ErrorCode.NONE:
            self._link.serves()
            return ErrorCode.REQUEST_TIMED_OUT if left else refused
        return refused

    async def _see_to(self, code: ErrorCode, stamp: GroupMetadata, failures: int, deadline: float) -> None:
        """What is to be done before another try. KafkaError if there is none."""
        member = self._member
        verdict = commits.judge(code)
        if verdict is CommitVerdict.FAILED:
            raise KafkaError(code, f"committing offsets of group '{self._group_id}'")
        if verdict is CommitVerdict.AGAIN:
            await sleep(self._io, delay_s(self._client.config.retry_backoff, failures, self._client.randomness))
        elif verdict is CommitVerdict.EPOCH:
            member.epoch_changed()
            self._wake.notify_all()
            await self._until(lambda: member.metadata != stamp, min(deadline, self._io.now() + EPOCH_WAIT_S))
        elif verdict is CommitVerdict.REBALANCE or (verdict is CommitVerdict.FENCED and member.is_rebalancing):
            member.epoch_changed()
            self._wake.notify_all()
            if not member.is_rebalancing:
                raise KafkaError(code, "the group rebalances; poll, then commit again")
            await self._until(lambda: not member.is_rebalancing, deadline)
        elif verdict is CommitVerdict.FENCED and member.metadata == stamp:
            if member.is_subscribed:
                member.fenced(code)
                self._wake.notify_all()
                self._changed.notify_all()
            raise KafkaError(code, f"group '{self._group_id}' went on without this member: nothing was committed")

    async def _until(self, holds: Callable[[], bool], deadline: float) -> None:
        while not holds() and self._io.now() < deadline:
            await self._changed.wait(deadline - self._io.now())

    def _stamp(self, departures: int) -> GroupMetadata:
        """Who commits: the member, or anybody if partitions were assigned by hand."""
        if not self._member.is_subscribed:
            return GroupMetadata(self._group_id, NO_GENERATION, NO_MEMBER, None)
        if self._member.error is not None:
            raise self._member.error
        if self._member.generation == NO_GENERATION or self._member.departures != departures:
            text = f"others of group '{self._group_id}' may have the partitions by now: nothing was committed; poll to go on"
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, text)
        return self._member.metadata

    async def committed(self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None) -> Committed:
        """None where nothing was committed. Offsets that a transaction may still change are waited for."""
        deadline = self._deadline(timeout_ms)
        left = list(dict.fromkeys(partitions))
        ids = self._ids(left)
        found: Committed = {}
        failures = 0
        while left:
            error = await self._fetch(left, ids, found, deadline)
            left = [key for key in left if key not in found]
            if error is None or not left:
                continue
            failures += 1
            if not error.retriable or isinstance(error, Closed) or self._io.now() >= deadline:
                raise error
            if error.code in UNKNOWN:
                if failures >= UNKNOWN_ATTEMPTS_MAX:
                    raise error
                ids = {}  # by name, whatever its id is by now
            await sleep(self._io, delay_s(self._client.config.retry_backoff, failures, self._client.randomness))
        return found

    async def _fetch(
        self, left: list[TopicPartition], ids: TopicIds, found: Committed, deadline: float
    ) -> KafkaError | None:
        """Adds what was found; the first error among the answers."""
        try:
            answer = await self._link.request(
                OFFSET_FETCH,
                commits.fetch_question({self._group_id: left}, ids, require_stable=True),
                timeout_ms=self._client.config.request_timeout_ms,
                deadline=deadline,
                version_max=commits.version_max({topic for topic, _ in left}, ids),
            )
        except ConnectionLost as error:
            return error
        answers = commits.fetch_answers(answer.message, self._group_id, ids).get(self._group_id, {})
        if isinstance(answers, KafkaError):
            if commits.judge(answers.code) is CommitVerdict.FIND:
                self._link.gone(answer.node_id)
            return answers
        self._link.serves()
        first: KafkaError | None = None
        for key, committed in answers.items():
            if not isinstance(committed, KafkaError):
                found[key] = committed
            elif first is None:
                first = committed
        return first or TimedOut(f"a partition is missing from what group '{self._group_id}' committed")

    def _ids(self, partitions: Iterable[TopicPartition]) -> TopicIds:
        return {topic: self._client.cluster.topic_id(topic) for topic, _ in partitions}

    def _deadline(self, timeout_ms: int | None) -> float:
        return self._io.now() + (timeout_ms or self._client.config.default_api_timeout_ms) / 1000
