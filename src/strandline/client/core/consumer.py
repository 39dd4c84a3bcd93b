"""A consumer of assigned partitions without I/O: Fetch requests out, answers in, records out.

The shell sends what `plan` returns, one request per node at a time, and calls `answered` or `lost` once for each.
Partitions in `finding`, `resetting` and `validating` need an answer of OffsetFetch, ListOffsets or OffsetForLeaderEpoch
first; `wants_topics` need metadata.

Truncation is noticed in two ways (KIP-320): every Fetch names the epoch of the last record that was fetched, and the
leader answers with where the logs part; and when the leader's epoch has changed, OffsetForLeaderEpoch is asked before
going on. Left out: fetching from followers (KIP-392).

Always true: records of a partition are shown in the order of their offsets, each once between two seeks; a partition is
fetched ahead by at most max_partition_fetch_bytes and one answer.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.client.config import ConsumerConfig
from strandline.client.core.backoff import Backoff, delay_s
from strandline.client.core.by_topic import by_topic
from strandline.client.core.cluster_metadata import NO_EPOCH, REFRESH, ClusterMetadata
from strandline.client.core.completed_fetch import CompletedFetch, ConsumerRecord
from strandline.client.core.fetch_session import BROKEN, FetchSessionHandler
from strandline.client.core.positions import EARLIEST, LATEST, PartitionState, PositionState
from strandline.client.errors import LogTruncated, OffsetOutOfRange
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import ZERO_UUID, TopicPartition
from strandline.ports import Buffer
from strandline.records.compression import DECOMPRESSED_BYTES_MAX
from strandline.records.errors import CorruptRecord
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.fetch import FetchRequest, FetchResponse

FETCH: Final = 1
FETCH_BY_NAME_MAX = 12
ERRORS_MAX = 100
"""Errors kept for an application that does not poll."""
RESET_TIMESTAMPS = {"earliest": EARLIEST, "latest": LATEST}


class _Wanted(NamedTuple):
    """What is asked of one partition; equal to the last time means that a session need not repeat it."""

    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    partition_max_bytes: int


class FetchCall(NamedTuple):
    node_id: int
    message: FetchRequest
    version_max: int | None
    incarnations: dict[TopicPartition, int]
    wanted: dict[TopicPartition, _Wanted]


class ConsumerCore:
    def __init__(
        self, config: ConsumerConfig, cluster: ClusterMetadata, backoff: Backoff, randomness: random.Random
    ) -> None:
        self.config = config
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self.wants_topics: set[str] = set()
        self._cluster = cluster
        self._backoff = backoff
        self._randomness = randomness
        self._sessions: dict[int, FetchSessionHandler[_Wanted]] = {}
        self._busy: set[int] = set()
        self._errors: deque[KafkaError] = deque(maxlen=ERRORS_MAX)
        self._Fetch = messages.request(FETCH)

    # Assignment

    def assign(self, assigned: Iterable[TopicPartition]) -> None:
        """Consume exactly these; those that were assigned before keep their positions,
        a group's others begin where it was.
        """
        before = self.partitions
        self.partitions = {}
        for topic, partition in assigned:
            state = before.get((topic, partition))
            if state is None:
                state = PartitionState(topic, partition)
                if self.config.group_id is not None:
                    state.find()
                else:
                    self.reset(state)
            self.partitions[topic, partition] = state
        self._errors.clear()

    def reset(self, state: PartitionState) -> None:
        """As auto_offset_reset says."""
        if self.config.auto_offset_reset in RESET_TIMESTAMPS:
            state.reset(RESET_TIMESTAMPS[self.config.auto_offset_reset])
        else:
            state.unset()

    def state(self, topic: str, partition: int) -> PartitionState:
        state = self.partitions.get((topic, partition))
        if state is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{partition} is not assigned")
        return state

    def finding(self, now: float) -> list[PartitionState]:
        return [s for s in self.partitions.values() if s.state is PositionState.FINDING and s.retry_at <= now]

    def resetting(self, now: float) -> list[PartitionState]:
        return [s for s in self.partitions.values() if s.state is PositionState.RESETTING and s.retry_at <= now]

    def validating(self, now: float) -> list[PartitionState]:
        return [s for s in self.partitions.values() if s.state is PositionState.VALIDATING and s.retry_at <= now]

    # Fetching

    def plan(self, now: float) -> list[FetchCall]:
        by_node: dict[int, dict[TopicPartition, _Wanted]] = {}
        for key, state in self.partitions.items():
            leader = self._cluster.leader(*key)
            if leader is None:
                self.wants_topics.add(state.topic)
                continue
            state.leader_changed(leader.leader_epoch)
            if state.state is not PositionState.FETCHING or state.is_paused or now < state.retry_at:
                continue
            if leader.node_id in self._busy or state.fetched_bytes >= self.config.max_partition_fetch_bytes:
                continue
            by_node.setdefault(leader.node_id, {})[key] = _Wanted(
                leader.leader_epoch, state.fetch_offset, state.last_epoch, self.config.max_partition_fetch_bytes
            )
        return [self._call(node_id, wanted) for node_id, wanted in by_node.items()]

    @property
    def is_all_asked(self) -> bool:
        """Every partition is on its way: before an answer comes, there is nothing to do."""
        for key, state in self.partitions.items():
            leader = self._cluster.leader(*key)
            if leader is None or leader.node_id not in self._busy or state.state is not PositionState.FETCHING:
                return False
        return bool(self.partitions)

    def _call(self, node_id: int, wanted: dict[TopicPartition, _Wanted]) -> FetchCall:
        config, Fetch = self.config, self._Fetch
        session = self._sessions.setdefault(node_id, FetchSessionHandler())
        asked = session.request(wanted)
        topics: dict[str, FetchRequest.FetchTopic] = {}
        for (name, partition), want in asked.partitions.items():
            if name not in topics:
                topics[name] = Fetch.FetchTopic(topic=name, topic_id=self._cluster.topic_id(name), partitions=[])
            topics[name].partitions.append(Fetch.FetchPartition(partition=partition, **want._asdict()))
        forgotten = [
            Fetch.ForgottenTopic(topic=name, topic_id=self._cluster.topic_id(name), partitions=partitions)
            for name, partitions in by_topic(asked.forgotten).items()
        ]
        message = Fetch(
            replica_id=-1,
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            isolation_level=int(config.is_read_committed),
            session_id=asked.session_id,
            session_epoch=asked.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=forgotten,
        )
        by_name = any(self._cluster.topic_id(name) == ZERO_UUID for name, _ in wanted)
        self._busy.add(node_id)
        incarnations = {key: self.partitions[key].incarnation for key in wanted}
        return FetchCall(node_id, message, FETCH_BY_NAME_MAX if by_name else None, incarnations, wanted)

    def answered(self, call: FetchCall, response: FetchResponse, now: float) -> None:
        self._busy.discard(call.node_id)
        code = error_code(response.error_code)
        self._sessions[call.node_id].answered(code, response.session_id)
        if code is not ErrorCode.NONE:
            if code not in BROKEN:
                self._back_off(call, now)
            self.wants_topics.update(topic for topic, _ in call.wanted)
            return
        self._cluster.learn_endpoints(response.node_endpoints)
        for topic in response.responses:
            name = self._cluster.name_of(topic.topic, topic.topic_id)
            if name is None:
                # That topic is gone, and another may have its name by now: the session still asks for the old one.
                self._sessions[call.node_id].lost()
                self.wants_topics.update(wanted for wanted, _ in call.wanted)
                self._back_off(call, now)
                continue
            for answer in topic.partitions:
                if (name, answer.partition_index) not in call.wanted:
                    continue
                state = self.partitions.get((name, answer.partition_index))
                if state is None or state.incarnation != call.incarnations[state.key]:
                    continue
                # The leader that followed this one may have answered before it.
                if state.fetch_offset == call.wanted[state.key].fetch_offset:
                    self._take_over(state, call.wanted[state.key], answer, now)

    def lost(self, call: FetchCall, now: float) -> None:
        self._busy.discard(call.node_id)
        self._sessions[call.node_id].lost()
        self.wants_topics.update(topic for topic, _ in call.wanted)
        self._back_off(call, now)

    def refused(self, call: FetchCall, error: KafkaError) -> None:
        """The request cannot be sent at all: the application has to know."""
        self._busy.discard(call.node_id)
        self.report(error)

    def report(self, error: KafkaError) -> None:
        """Raise it where the application takes records."""
        self._errors.append(error)

    def _back_off(self, call: FetchCall, now: float) -> None:
        for key in call.wanted:
            if key in self.partitions:
                self.partitions[key].retry_at = now + delay_s(self._backoff, 1, self._randomness)

    def _take_over(
        self, state: PartitionState, wanted: _Wanted, answer: FetchResponse.PartitionData, now: float
    ) -> None:
        code = error_code(answer.error_code)
        leader = answer.current_leader
        is_newer = self._cluster.learn_leader(state.topic, state.partition, leader.leader_id, leader.leader_epoch)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(state, wanted.fetch_offset)
        elif code in REFRESH:
            if not is_newer:
                self.wants_topics.add(state.topic)
                state.retry_at = now + delay_s(self._backoff, 1, self._randomness)
        elif code is not ErrorCode.NONE:
            state.retry_at = now + delay_s(self._backoff, 1, self._randomness)
            text = f"fetching {state.topic}-{state.partition} from offset {wanted.fetch_offset}"
            self._errors.append(KafkaError(code, text))
        elif answer.diverging_epoch.end_offset >= 0:
            self.truncated(state, answer.diverging_epoch.end_offset)
        else:
            state.high_watermark = answer.high_watermark
            state.last_stable_offset = answer.last_stable_offset
            state.log_start_offset = answer.log_start_offset
            if answer.records:
                self._add(state, wanted, answer, answer.records)

    def _add(
        self, state: PartitionState, wanted: _Wanted, answer: FetchResponse.PartitionData, records: Buffer
    ) -> None:
        aborted = [(a.producer_id, a.first_offset) for a in answer.aborted_transactions or ()]
        try:
            fetched = CompletedFetch(
                state.topic,
                state.partition,
                wanted.fetch_offset,
                records,
                aborted if self.config.is_read_committed else None,
                check_crcs=self.config.check_crcs,
                decompressed_bytes_max=DECOMPRESSED_BYTES_MAX,
            )
        except CorruptRecord as error:
            self._errors.append(error)
            return
        if fetched.next_offset > wanted.fetch_offset:
            state.add(fetched)
        elif fetched.last_epoch == NO_EPOCH:
            text = (
                f"{state.topic}-{state.partition}: the batch at offset {wanted.fetch_offset} does not fit "
                f"in the {len(records)} bytes that came; raise max_partition_fetch_bytes"
            )
            self._errors.append(KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, text))

    # Positions that are not in the log

    def _out_of_range(self, state: PartitionState, offset: int) -> None:
        timestamp = RESET_TIMESTAMPS.get(self.config.auto_offset_reset)
        if timestamp is not None:
            state.reset(timestamp)
        else:
            self._errors.append(OffsetOutOfRange(state.topic, state.partition, offset))
            state.refetch()

    def validated(self, state: PartitionState, leader_epoch: int, end_offset: int) -> None:
        """The leader's answer: where its log of our epoch, or of the one before, ends."""
        if leader_epoch < 0 or end_offset < 0:
            self.truncated(state, None)
        elif end_offset < state.fetch_offset:
            self.truncated(state, end_offset)
        else:
            state.validated()

    def truncated(self, state: PartitionState, divergent_offset: int | None) -> None:
        """The log parts from what we fetched at this offset."""
        if divergent_offset is not None and divergent_offset >= state.position:
            state.refetch()  # the application has seen nothing of what was cut
            return
        timestamp = RESET_TIMESTAMPS.get(self.config.auto_offset_reset)
        if timestamp is None:
            self._errors.append(LogTruncated(state.topic, state.partition, state.position, divergent_offset))
            state.hold()
        elif divergent_offset is None:
            state.reset(timestamp)
        else:
            state.seek(divergent_offset)

    # Records

    def take(self, records_max: int) -> list[ConsumerRecord]:
        """Records that are here. An error that the application must know of is raised when its turn comes."""
        taken: list[ConsumerRecord] = []
        for key, state in list(self.partitions.items()):
            if state.fetched and not state.is_paused:
                if len(taken) >= records_max:
                    break
                try:
                    taken += state.take(records_max - len(taken))
                except CorruptRecord as error:
                    self._errors.append(error)
                # A partition that was served goes to the end of the line.
                self.partitions[key] = self.partitions.pop(key)
        if not taken and self._errors:
            raise self._errors.popleft()
        for state in self.partitions.values():
            if state.state is PositionState.UNSET and not state.is_paused and not taken:
                raise OffsetOutOfRange(state.topic, state.partition, None)
        return taken
