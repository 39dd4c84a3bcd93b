"""A range of one partition's offsets, fetched piece by piece, without I/O: Fetch requests out, raw batches in.

The shell sends what `request` returns to the leader, and calls `answered` or `lost` once for each; it refreshes the
topic's metadata when `wants_metadata` says so, reports the result with `metadata_changed`, and does nothing before
`retry_at`.

The range ends when every offset below its end was passed: by a record, by a control batch, or by a batch that begins
beyond it. Compaction may have left nothing there at all. Then the leader's answers stay empty though its log goes on to
the end, and after EMPTY_S of nothing but such answers the range is over. (A few prove nothing: a leader that waits for
a slow disk, or for a remote store, answers so as well.)

Always true: pieces come in the order of their offsets, and what a piece has passed is never fetched again; nothing is
read from a topic that has another id than the one that was asked for, or than the one from which the first piece came.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.client.config import ConsumerConfig
from strandline.client.core.backoff import Backoff, delay_s
from strandline.client.core.batch_run import run_of
from strandline.client.core.cluster_metadata import NO_EPOCH, REFRESH, ClusterMetadata, LeaderMetadata
from strandline.client.core.connection import RawReply
from strandline.client.core.fetch_answer import FetchAnswer, read_answer
from strandline.client.errors import LogTruncated, OffsetOutOfRange, TimedOut, TopicRecreated
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import ZERO_UUID, Uuid
from strandline.records.errors import CorruptRecord
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.fetch import FetchRequest, FetchResponse

FETCH: Final = 1
FETCH_BY_NAME_MAX = 12
CONSUMER = -1
NO_SESSION, FINAL_EPOCH = 0, -1

EMPTY_S = 30.0
DOUBT_S = 5.0
"""How long a leader may be behind the end before it is asked elsewhere whether another leads by now."""
ESTRANGED_ANSWERS = 5
"""Metadata answers in a row, without the topic or with another of that name, until that is believed."""
CORRUPT_ANSWERS = 3
"""How often a leader may say that its own copy is damaged: another may lead by then."""
FIRST_FETCH_BYTES = 1 << 20
"""Before anything is known of the size of records."""
SPARE_BYTES = 1 << 16
FRAME_OVERHEAD_BYTES = 1 << 16
"""What an answer has besides its records, at most."""


class FetchedBytes(NamedTuple):
    """One piece of a partition."""

    offset: int
    """Records below it, at the beginning of the first batch, belong to the piece before."""
    data: memoryview
    """Whole batches. The memory is used again once no view of it is left."""
    aborted: list[tuple[int, int]] | None
    """Producer id and first offset of aborted transactions in it; None if everything is read, committed or not."""
    next_offset: int
    """Where the next piece goes on."""
    log_start_offset: int
    high_watermark: int


class RangeCall(NamedTuple):
    node_id: int
    message: FetchRequest
    version_max: int | None
    topic_id: Uuid


class RangeFetch:
    def __init__(
        self,
        cluster: ClusterMetadata,
        topic: str,
        partition: int,
        start: int,
        end: int,
        config: ConsumerConfig,
        *,
        topic_id: Uuid | None,
        timeout_s: float,
        frame_bytes_max: int,
        backoff: Backoff,
        randomness: random.Random,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.position = start
        self.end = end
        self.wants_metadata = False
        self.retry_at = 0.0
        self._cluster = cluster
        self._config = config
        self._topic_id = None if topic_id == ZERO_UUID else topic_id
        self._timeout_s = timeout_s
        self._deadline = 0.0
        self._batch_bytes_max = frame_bytes_max - FRAME_OVERHEAD_BYTES
        self._backoff = backoff
        self._randomness = randomness
        self._last_epoch = NO_EPOCH
        self._passed, self._passed_bytes = 0, 0
        """Offsets, and the bytes they took."""
        self._least_bytes = 0
        """What the batch at the position needs, if it did not fit."""
        self._failures = self._estranged_answers = self._corrupt_answers = 0
        """Each in a row."""
        self._empty_since: float | None = None
        """When the first came of the answers, in a row, that were empty though the log goes on to the end."""
        self._doubt_at = float("inf")
        self._last_heard = "nothing"
        self._Fetch = messages.request(FETCH)

    @property
    def is_done(self) -> bool:
        return self.position >= self.end

    @property
    def place(self) -> str:
        return f"{self.topic}-{self.partition} from offset {self.position}"

    # Time

    def wait_from(self, now: float) -> None:
        """A caller waits for the next piece from now on."""
        self._deadline = now + self._timeout_s

    def patience_s(self, now: float) -> float:
        """How long may still be waited; TimedOut if no more."""
        left = self._deadline - now
        if left <= 0:
            raise TimedOut(
                f"fetching {self.place}: nothing came for {self._timeout_s:g} s; last heard: {self._last_heard}"
            )
        return left

    def _back_off(self, heard: str, now: float) -> None:
        self._last_heard = heard
        self._failures += 1
        self.retry_at = now + delay_s(self._backoff, self._failures, self._randomness)

    # Whom to ask

    def leader(self) -> LeaderMetadata | None:
        """None if no leader is known yet: metadata is wanted, or was in vain."""
        if self._is_estranged:
            self.wants_metadata = True
            return None
        leader = self._cluster.leader(self.topic, self.partition)
        if leader is None:
            self.wants_metadata = True
        return leader

    @property
    def _is_estranged(self) -> bool:
        """The topic that is known under this name is not ours."""
        known = self._cluster.topic_id(self.topic)
        return self._topic_id is not None and known not in (ZERO_UUID, self._topic_id)

    def metadata_changed(self, now: float) -> None:
        """The topic was asked for a moment ago.
        TopicRecreated, or that it does not exist, once it was said often enough.
        """
        self.wants_metadata = False
        known = self._cluster.topics.get(self.topic)
        if known is not None and self.partition in known.partitions and not self._is_estranged:
            self._estranged_answers = 0
            if self._cluster.leader(self.topic, self.partition) is None:
                self._back_off("the partition has no leader", now)
            return
        self._estranged_answers += 1
        error = self._estrangement()
        if self._estranged_answers >= ESTRANGED_ANSWERS or not error.retriable:
            raise error
        self._back_off(str(error), now)

    def metadata_lost(self, error: KafkaError, now: float) -> None:
        """No leader could be asked."""
        self._back_off(error.message, now)

    def _estrangement(self) -> KafkaError:
        known = self._cluster.topics.get(self.topic)
        if known is None:
            code = self._cluster.errors.get(self.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return KafkaError(code, f"topic '{self.topic}', while fetching {self.place}")
        if self.partition not in known.partitions:
            text = f"topic '{self.topic}' has {len(known.partitions)} partitions, no {self.partition}"
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        assert self._topic_id is not None
        return TopicRecreated(self.topic, self._topic_id, known.topic_id)

    # Asking

    def request(self, leader: LeaderMetadata) -> RangeCall:
        config, Fetch = self._config, self._Fetch
        max_bytes = self._fetch_bytes()
        topic_id = self._cluster.topic_id(self.topic)
        if topic_id != ZERO_UUID and self._topic_id is not None:
            topic_id = self._topic_id  # another may have got the name since the leader was looked up
        partition = Fetch.FetchPartition(
            partition=self.partition,
            current_leader_epoch=leader.leader_epoch,
            fetch_offset=self.position,
            last_fetched_epoch=self._last_epoch,
            partition_max_bytes=max_bytes,
        )
        message = Fetch(
            replica_id=CONSUMER,
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=max_bytes,
            isolation_level=int(config.is_read_committed),
            session_id=NO_SESSION,
            session_epoch=FINAL_EPOCH,
            topics=[Fetch.FetchTopic(topic=self.topic, topic_id=topic_id, partitions=[partition])],
        )
        version_max = FETCH_BY_NAME_MAX if topic_id == ZERO_UUID else None
        return RangeCall(leader.node_id, message, version_max, topic_id)

    def _fetch_bytes(self) -> int:
        """As configured, but not much more than what is left of the range seems to need."""
        most = min(self._config.max_partition_fetch_bytes, self._config.fetch_max_bytes)
        if not self._passed:
            expected = FIRST_FETCH_BYTES
        else:
            expected = (self.end - self.position) * self._passed_bytes * 17 // (self._passed * 16) + SPARE_BYTES
        return max(min(most, expected), self._least_bytes, 1)

    def lost(self, error: KafkaError, now: float) -> None:
        """No answer came, or the leader cannot be reached."""
        self.wants_metadata = True
        self._back_off(error.message, now)

    # Answers

    def answered(self, call: RangeCall, reply: RawReply, now: float) -> FetchedBytes | None:
        """The next piece, if the answer has one; whatever ends the range for good is raised."""
        answer = read_answer(reply)
        message = answer.message
        self._cluster.learn_endpoints(message.node_endpoints)
        code = error_code(message.error_code)
        found = [p for topic in message.responses for p in topic.partitions if p.partition_index == self.partition]
        if code is not ErrorCode.NONE or not found:
            self._refused(code, message.throttle_time_ms, now)
            return None
        partition = found[0]
        code = error_code(partition.error_code)
        if code is not ErrorCode.NONE:
            leader = partition.current_leader
            is_newer = self._cluster.learn_leader(self.topic, self.partition, leader.leader_id, leader.leader_epoch)
            self._failed(code, is_newer, now)
            return None
        if partition.diverging_epoch.end_offset >= 0:
            raise LogTruncated(self.topic, self.partition, self.position, partition.diverging_epoch.end_offset)
        if self._topic_id is None and call.topic_id != ZERO_UUID:
            self._topic_id = call.topic_id
        self._corrupt_answers = 0
        return self._take(partition, answer, now)

    def _refused(self, code: ErrorCode, throttle_time_ms: int, now: float) -> None:
        if code is ErrorCode.NONE and throttle_time_ms > 0:  # the broker holds us back, and has looked at no log
            self._last_heard = f"throttled for {throttle_time_ms} ms"
            self.retry_at = now + throttle_time_ms / 1000
        elif code is ErrorCode.NONE:
            self._back_off("an answer without the partition", now)
        else:
            self._failed(code, False, now)

    def _failed(self, code: ErrorCode, is_newer: bool, now: float) -> None:
        error = KafkaError(code, f"fetching {self.place}")
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OffsetOutOfRange(self.topic, self.partition, self.position)
        if code is ErrorCode.CORRUPT_MESSAGE:
            self._corrupt_answers += 1
            if self._corrupt_answers >= CORRUPT_ANSWERS:
                raise CorruptRecord(
                    f"{self.topic}-{self.partition}: the leader's log is damaged at offset {self.position}"
                )
        if is_newer:  # another leader to ask: no reason to wait
            self._last_heard = str(error)
        elif code in REFRESH:
            self.wants_metadata = True
            self._back_off(str(error), now)
        elif error.retriable:
            self._back_off(str(error), now)
        else:
            raise error

    def _take(self, partition: FetchResponse.PartitionData, answer: FetchAnswer, now: float) -> FetchedBytes | None:
        try:
            run = run_of(answer.records, self.position, self.end)
        except CorruptRecord as error:
            raise CorruptRecord(f"{self.topic}-{self.partition} at offset {self.position}: {error.message}") from None
        if run.next_offset == self.position:
            self._nothing_whole(partition, answer, run.cut_batch_bytes, now)
            return None
        offset, self.position = self.position, run.next_offset
        self._failures = self._least_bytes = 0
        self._empty_since, self._doubt_at = None, float("inf")
        if run.size_bytes == 0:  # compaction left nothing of the range but a batch beyond it
            return None
        self._last_epoch = run.last_epoch
        self._passed += self.position - offset
        self._passed_bytes += run.size_bytes
        aborted = None
        if self._config.is_read_committed:
            aborted = [(a.producer_id, a.first_offset) for a in partition.aborted_transactions or ()]
        return FetchedBytes(
            offset,
            answer.records[: run.size_bytes],
            aborted,
            self.position,
            partition.log_start_offset,
            partition.high_watermark,
        )

    def _nothing_whole(
        self, partition: FetchResponse.PartitionData, answer: FetchAnswer, batch_bytes: int, now: float
    ) -> None:
        """No batch, or none that is complete."""
        if answer.records:
            self._too_large(batch_bytes, len(answer.records), now)
            return
        is_read_committed = self._config.is_read_committed
        name = "last stable offset" if is_read_committed else "high watermark"
        readable_end = partition.last_stable_offset if is_read_committed else partition.high_watermark
        heard = f"nothing, and the {name} is {readable_end}"
        if readable_end < self.end:  # the leader has waited with its answer for more to come: it may be asked at once
            self._failures, self._last_heard, self._empty_since = 0, heard, None
            self.wants_metadata = now >= self._doubt_at
            self._doubt_at = now + DOUBT_S if self.wants_metadata else min(self._doubt_at, now + DOUBT_S)
            return
        self._back_off(heard, now)
        if self._empty_since is None:
            self._empty_since = now
            # Who waits less than that would never come to the end of such a log.
            self._deadline = max(self._deadline, now + 2 * EMPTY_S)
        elif now - self._empty_since >= EMPTY_S:
            self.position = self.end

    def _too_large(self, batch_bytes: int, came_bytes: int, now: float) -> None:
        if batch_bytes > self._batch_bytes_max:
            text = f"fetching {self.place}: a batch of {batch_bytes} bytes, more than frame_bytes_max allows"
            raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, text)
        if batch_bytes <= self._least_bytes:  # it was asked for, and did not come
            self._back_off(f"{came_bytes} bytes of a batch of {batch_bytes}", now)
        self._least_bytes = max(batch_bytes, came_bytes + 1, self._least_bytes)
