"""A producer without I/O: records in, Produce requests out, answers in, deliveries out.

How order and once-ness are kept inside a partition is in `partition_queue.py`; this file finds each record's partition
and each batch's leader, decides when a batch is due, and hands every answer to the rule it belongs to.

The shell calls `drain` until it returns nothing, writes each request to the connection it names, in that order, and
calls `answered` or `lost` once for each. What it should do besides is in `wants_*`: metadata of topics, a connection to
a node, a producer id. It calls again when a record opened a batch, when an answer came, and at `wakeup`.

Always true: what waits is bounded by buffer_memory; no record waits longer than delivery_timeout_ms, plus at most one
request's timeout if it is in flight then; a record that was reported as failed is never sent again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.client.config import ProducerConfig
from strandline.client.core.backoff import Backoff, delay_s
from strandline.client.core.batches import (
    NO_OFFSET,
    Buffer,
    ProducerBatch,
    ProducerIdentity,
    RecordDelivery,
    RecordsBatch,
)
from strandline.client.core.cluster_metadata import REFRESH, ClusterMetadata
from strandline.client.core.partition_queue import PartitionQueue
from strandline.client.core.produce_verdict import ProduceVerdict, judge, surely_not_appended
from strandline.client.core.sticky_partitioner import StickyPartitioner
from strandline.client.core.whole_batches import Receipt
from strandline.client.errors import BufferExhausted, Closed, RecordTooLarge, TimedOut
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import ZERO_UUID, TopicPartition
from strandline.records.header import RECORDS_AT
from strandline.records.partitioner import partition_for
from strandline.records.ready import ReadyBatch
from strandline.records.record import Headers, record_bytes_max
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.client.core.transaction import TransactionCore
    from strandline.wire.stubs.produce import ProduceRequest, ProduceResponse

PRODUCE: Final = 0
INIT_PRODUCER_ID: Final = 22
PRODUCE_BY_NAME_MAX = 12
"""The last version that names topics; later ones need the topic's id."""
PRODUCE_BEFORE_V2_MAX = 11
"""The last version in which a leader only asks whether its partition is in the transaction; later ones add it."""


LOST_TRACK = "they may be in the log or not, and the broker no longer follows our sequences"


class ProduceCall(NamedTuple):
    """One Produce request: at most one batch of each partition."""

    node_id: int
    link: object
    message: ProduceRequest
    version_max: int | None
    timeout_s: float
    batches: list[ProducerBatch]


class _UnroutedRecord(NamedTuple):
    """A record whose topic is not known yet."""

    key: Buffer | None
    value: Buffer | None
    headers: Headers
    partition: int | None
    delivery: RecordDelivery
    memory_bytes: int
    deadline: float


class ProducerCore:
    def __init__(
        self, config: ProducerConfig, cluster: ClusterMetadata, backoff: Backoff, randomness: random.Random
    ) -> None:
        self.config = config
        self.wants_topics: set[str] = set()
        self.wants_nodes: set[int] = set()
        self.wants_identity = False
        self.is_flushing = False
        self.buffered_bytes = 0
        self._cluster = cluster
        self._backoff = backoff
        self._randomness = randomness
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._active: dict[TopicPartition, PartitionQueue] = {}
        """Queues with batches in them, the one that was served longest ago first."""
        self._waiting: dict[str, list[_UnroutedRecord]] = {}
        self._sticky: dict[str, StickyPartitioner] = {}
        self._in_flight: dict[object, int] = {}
        self._identity: ProducerIdentity | None = None
        self.transaction: TransactionCore | None = None
        if config.transactional_id is not None:
            from strandline.client.core.transaction import TransactionCore  # few processes need it

            self.transaction = TransactionCore(
                config.transactional_id,
                config.transaction_timeout_ms,
                cluster,
                backoff,
                randomness,
                is_two_phase=config.transaction_two_phase_commit_enable,
            )
        self._Produce = messages.request(PRODUCE)

    # Records

    def append(
        self,
        topic: str,
        key: Buffer | None,
        value: Buffer | None,
        headers: Headers,
        partition: int | None,
        delivery: RecordDelivery,
        now: float,
    ) -> bool:
        """Take a record. True if there is now something to do that was not there before."""
        config = self.config
        if self.transaction is not None:
            self.transaction.ensure_open()
        memory_bytes = record_bytes_max(key, value, headers)
        if memory_bytes + RECORDS_AT > config.max_request_size:
            error = RecordTooLarge(memory_bytes, f"max_request_size, {config.max_request_size}")
            self._is_lost(error)
            raise error
        if self.buffered_bytes + memory_bytes > config.buffer_memory:
            raise BufferExhausted(config.buffer_memory)
        self.buffered_bytes += memory_bytes
        deadline = now + config.record_timeout_ms / 1000
        if topic not in self._cluster.topics or topic in self._waiting:
            # Records of a topic that is not known yet keep their order: all of them wait. Their bytes may not be ours.
            kept = None if value is None else bytes(value)
            record = _UnroutedRecord(
                None if key is None else bytes(key), kept, headers, partition, delivery, memory_bytes, deadline
            )
            self._waiting.setdefault(topic, []).append(record)
            self.wants_topics.add(topic)
            return True
        return self._assign(topic, key, value, headers, partition, delivery, memory_bytes, now, deadline)

    def _assign(
        self,
        topic: str,
        key: Buffer | None,
        value: Buffer | None,
        headers: Headers,
        partition: int | None,
        delivery: RecordDelivery,
        memory_bytes: int,
        now: float,
        deadline: float,
    ) -> bool:
        count = self._cluster.partitions_count(topic) or 0
        if partition is None and key is not None:
            partition = partition_for(bytes(key), count)
        elif partition is None:
            partition = self._sticky_for(topic).partition_for(memory_bytes)
        elif not 0 <= partition < count:
            self.buffered_bytes -= memory_bytes
            text = f"{topic} has partitions 0-{count - 1}, not {partition}"
            error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
            self._is_lost(error)
            delivery.resolve(error)
            return False
        queue = self._active.get((topic, partition))
        if queue is None:
            queue = self._activate(topic, partition)
        is_newer = False
        batch = queue.queue[-1] if queue.queue else None
        if not isinstance(batch, RecordsBatch) or not batch.takes(memory_bytes, self.config.batch_size):
            batch = queue.open_batch(now, deadline)
            is_newer = True
        batch.append(key, value, headers, delivery, memory_bytes)
        return is_newer

    def append_whole(self, topic: str, partition: int, batch: ReadyBatch, receipt: Receipt, now: float) -> None:
        """Take a batch as it is: its bytes are ours from here on. One that is larger than buffer_memory goes alone."""
        if self.transaction is not None:
            self.transaction.ensure_open()
        memory_bytes = len(batch.data)
        if not self.has_room(memory_bytes):
            raise BufferExhausted(self.config.buffer_memory)
        self.buffered_bytes += memory_bytes
        queue = self._active.get((topic, partition)) or self._activate(topic, partition)
        queue.add_whole(batch, receipt, now, now + self.config.record_timeout_ms / 1000)

    def has_room(self, memory_bytes: int) -> bool:
        return not self.buffered_bytes or self.buffered_bytes + memory_bytes <= self.config.buffer_memory

    def _activate(self, topic: str, partition: int) -> PartitionQueue:
        queue = self._queues.get((topic, partition))
        if queue is None:
            queue = self._queues[topic, partition] = PartitionQueue(
                topic,
                partition,
                idempotent=self.config.idempotent,
                in_flight_max=self.config.max_in_flight_requests_per_connection,
            )
        if self.transaction is not None:
            self.transaction.admits((topic, partition))  # early, so that the coordinator knows before the batch is due
        elif self.config.idempotent and self._identity is not None and queue.identity.producer_id < 0:
            queue.identify(self._identity, self._give_up)
        self._active[topic, partition] = queue
        return queue

    def _sticky_for(self, topic: str) -> StickyPartitioner:
        sticky = self._sticky.get(topic)
        if sticky is None:
            sticky = self._sticky[topic] = StickyPartitioner(
                topic, self._cluster, self.config.batch_size, self._randomness
            )
        return sticky

    def metadata_changed(self, now: float) -> None:
        """Give records that waited for their topic a partition, in the order in which they came."""
        for topic in list(self._waiting):
            if self._cluster.partitions_count(topic) is None:
                error = self._cluster.errors.get(topic)
                if error is not None and error not in REFRESH:
                    self._fail_waiting(topic, lambda _: True, KafkaError(error, f"topic '{topic}'"))
                else:
                    self.wants_topics.add(topic)
                continue
            for w in self._waiting.pop(topic):
                self._assign(topic, w.key, w.value, w.headers, w.partition, w.delivery, w.memory_bytes, now, w.deadline)

    @property
    def lacks_leader(self) -> bool:
        """Records wait for a partition that has no leader, as far as is known."""
        return any(
            queue.queue and self._cluster.leader(queue.topic, queue.partition) is None
            for queue in self._active.values()
        )

    @property
    def busy_links(self) -> list[object]:
        """Connections with requests in flight."""
        return list(self._in_flight)

    @property
    def has_unfinished(self) -> bool:
        return bool(self._active or self._waiting)

    # Sending

    def drain(self, now: float, link_to: Callable[[int], object | None]) -> list[ProduceCall]:
        """The requests to send now. `link_to` is the open connection to a node, or None."""
        self.expire(now)
        self._drop_what_stays()
        chosen: dict[int, tuple[object, list[PartitionQueue], int]] = {}
        for key, queue in list(self._active.items()):
            if queue.is_idle:
                del self._active[key]
                continue
            if self.transaction is not None:
                if not self._is_in_transaction(queue, self.transaction):
                    continue
            elif queue.wants_identity:
                self.wants_identity = True
                continue
            if not queue.queue or now < self._due_at(queue):
                continue
            leader = self._cluster.leader(queue.topic, queue.partition)
            if leader is None:
                self.wants_topics.add(queue.topic)
                continue
            link = link_to(leader.node_id)
            if link is None:
                self.wants_nodes.add(leader.node_id)
                continue
            if self._in_flight.get(link, 0) >= self.config.max_in_flight_requests_per_connection:
                continue
            batch = queue.next_for(link)
            if batch is None:
                continue
            _, queues, size_bytes = chosen.get(leader.node_id, (link, [], 0))
            if queues and size_bytes + batch.size_bytes > self.config.max_request_size:
                continue
            chosen[leader.node_id] = (link, [*queues, queue], size_bytes + batch.size_bytes)
        return [self._call(node_id, link, queues, now) for node_id, (link, queues, _) in chosen.items()]

    def _drop_what_stays(self) -> None:
        """Of a transaction that is aborted nothing more is sent; what is in flight is waited for."""
        why = None if self.transaction is None else self.transaction.why_dropped()
        if why is None:
            return
        for queue in self._active.values():
            for batch in list(queue.queue):
                queue.given_up(batch, certain=not batch.uncertain)
                self._fail(batch, why)
        for topic in list(self._waiting):
            self._fail_waiting(topic, lambda _: True, why)

    def _is_in_transaction(self, queue: PartitionQueue, transaction: TransactionCore) -> bool:
        """Its batches may leave, under the pair of this transaction."""
        if not transaction.admits((queue.topic, queue.partition)):
            return False
        if queue.identity is not transaction.identity and not queue.in_flight:
            queue.identify(transaction.identity, self._give_up)
            queue.failures = 0
        return True

    def _due_at(self, queue: PartitionQueue) -> float:
        first = queue.queue[0]
        if queue.failures:
            return queue.retry_at
        is_full = len(queue.queue) > 1 or first.attempts or first.is_full(self.config.batch_size)
        is_flushing = self.is_flushing or (self.transaction is not None and self.transaction.is_ending)
        if is_full or is_flushing or 2 * self.buffered_bytes > self.config.buffer_memory:
            return 0.0
        return first.created_at + self.config.linger_ms / 1000

    def _call(self, node_id: int, link: object, queues: Sequence[PartitionQueue], now: float) -> ProduceCall:
        config, Produce = self.config, self._Produce
        topics: dict[str, ProduceRequest.TopicProduceData] = {}
        batches = []
        version_max = None
        if self.transaction is not None:
            self.transaction.sends()
            version_max = None if self.transaction.is_v2 else PRODUCE_BEFORE_V2_MAX
        for queue in queues:
            batch = queue.take(link, config.compression_type, config.compression_level)
            batches.append(batch)
            topic = topics.get(queue.topic)
            if topic is None:
                topic_id = self._cluster.topic_id(queue.topic)
                if topic_id == ZERO_UUID:
                    version_max = min(version_max or PRODUCE_BY_NAME_MAX, PRODUCE_BY_NAME_MAX)
                topic = topics[queue.topic] = Produce.TopicProduceData(
                    name=queue.topic, topic_id=topic_id, partition_data=[]
                )
            topic.partition_data.append(Produce.PartitionProduceData(index=queue.partition, records=batch.data))
            # The next time, others come first.
            self._active[queue.topic, queue.partition] = self._active.pop((queue.topic, queue.partition))
        patience_s = max(0.001, min(batch.deadline for batch in batches) - now)
        timeout_s = min(config.request_timeout_ms / 1000, patience_s)
        message = Produce(
            transactional_id=config.transactional_id,
            acks=config.acks,
            timeout_ms=int(timeout_s * 1000) or 1,
            topic_data=list(topics.values()),
        )
        self._in_flight[link] = self._in_flight.get(link, 0) + 1
        return ProduceCall(node_id, link, message, version_max, timeout_s, batches)

    def wakeup(self, now: float) -> float | None:
        """When something is due that no event will announce.
        What is due already waits for a connection, a leader or a reply.
        """
        times = [queue.queue[0].deadline for queue in self._active.values() if queue.queue]
        due = (self._due_at(queue) for queue in self._active.values() if queue.queue and not queue.in_flight)
        times += [at for at in due if at > now]
        times += [waiting[0].deadline for waiting in self._waiting.values() if waiting]
        return min(times, default=None)

    # Answers

    def sent_without_reply(self, call: ProduceCall) -> None:
        """acks=0: no answer will say what became of them."""
        self._finished(call)
        for batch in call.batches:
            self._queues[batch.topic, batch.partition].acknowledged(batch)
            self._acknowledge(batch, NO_OFFSET, -1)

    def answered(self, call: ProduceCall, response: ProduceResponse, now: float) -> None:
        self._finished(call)
        self._cluster.learn_endpoints(response.node_endpoints)
        answers = {}
        for topic in response.responses:
            name = self._cluster.name_of(topic.name, topic.topic_id)
            for partition in topic.partition_responses:
                answers[name, partition.index] = partition
        for batch in call.batches:
            answer = answers.get((batch.topic, batch.partition))
            if answer is None:
                # A topic id that we no longer know, or a broker that left it out: unknown.
                self._unanswered(batch, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "no answer for the partition"), now)
            else:
                leader = answer.current_leader
                is_newer = self._cluster.learn_leader(
                    batch.topic, batch.partition, leader.leader_id, leader.leader_epoch
                )
                if not is_newer and error_code(answer.error_code) in REFRESH:
                    self.wants_topics.add(batch.topic)
                self._judge(batch, answer, now)
                if is_newer:  # another leader to ask: no reason to wait
                    self._queues[batch.topic, batch.partition].retry_at = now

    def lost(self, call: ProduceCall, error: KafkaError, now: float) -> None:
        """No answer came, or none that could be read. The batches may or may not be in the log."""
        self._finished(call)
        for batch in call.batches:
            self._unanswered(batch, error, now)

    def refused(self, call: ProduceCall, error: KafkaError) -> None:
        """The request was never sent and never can be, such as for want of a common version."""
        self._finished(call)
        for batch in call.batches:
            self._queues[batch.topic, batch.partition].given_up(batch, certain=True)
            self._fail(batch, error)

    def _finished(self, call: ProduceCall) -> None:
        left = self._in_flight[call.link] - 1
        if left:
            self._in_flight[call.link] = left
        else:
            del self._in_flight[call.link]

    def _unanswered(self, batch: ProducerBatch, error: KafkaError, now: float) -> None:
        self.wants_topics.add(batch.topic)
        self._retry(batch, error, now, certain=False)

    def _judge(self, batch: ProducerBatch, answer: ProduceResponse.PartitionProduceResponse, now: float) -> None:
        queue = self._queues[batch.topic, batch.partition]
        code = error_code(answer.error_code)
        error = KafkaError(code, _explain(batch, answer))
        certain = surely_not_appended(code)
        match judge(code, batch.records_count):
            case ProduceVerdict.ACKNOWLEDGED:
                queue.acknowledged(batch)
                offset = answer.base_offset if code is ErrorCode.NONE else NO_OFFSET
                self._acknowledge(batch, offset, answer.log_append_time_ms)
            case ProduceVerdict.SPLIT:
                queue.split(batch)
            case ProduceVerdict.RETRY:
                self._retry(batch, error, now, certain=certain)
            case ProduceVerdict.SEQUENCE if self.transaction is not None:
                # No new producer id inside a transaction, which would go on without what is missing (TXN-TC5).
                if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and queue.has_earlier(batch):
                    self._retry(batch, error, now, certain=True)
                else:
                    queue.given_up(batch, certain=True)
                    self._fail(batch, error)
            case ProduceVerdict.SEQUENCE if self.config.idempotent:
                if batch.deadline <= now:
                    queue.given_up(batch, certain=True)
                    self._fail(batch, error)
                elif queue.out_of_sequence(batch):
                    self._back_off(queue, batch, now)
                else:
                    self._fail(batch, KafkaError(code, f"{error.message}: {LOST_TRACK}"))
            case _:
                queue.given_up(batch, certain=certain)
                self._fail(batch, error)

    def _retry(self, batch: ProducerBatch, error: KafkaError, now: float, *, certain: bool) -> None:
        queue = self._queues[batch.topic, batch.partition]
        if batch.deadline <= now:
            queue.given_up(batch, certain=certain)
            self._fail(batch, TimedOut(f"{_place(batch)}: not delivered in time; the last answer was {error}"))
        else:
            queue.put_back(batch, certain=certain)
            self._back_off(queue, batch, now)

    def _back_off(self, queue: PartitionQueue, batch: ProducerBatch, now: float) -> None:
        """Only the first batch counts: those behind it failed because it did, or with it."""
        if queue.queue[0] is batch:
            queue.failures += 1
            queue.retry_at = now + delay_s(self._backoff, queue.failures, self._randomness)

    # Identity

    def identified(self, identity: ProducerIdentity) -> None:
        """A new producer id, for the partitions that have none or need another."""
        self.wants_identity = False
        self._identity = identity
        for queue in self._active.values():
            if queue.wants_identity:
                queue.identify(identity, self._give_up)

    def identity_refused(self, error: KafkaError) -> None:
        """There will be no producer id: fail what needs one."""
        self.wants_identity = False
        for queue in self._active.values():
            if queue.wants_identity:
                self._release(queue.fail_all(error))

    def _give_up(self, batch: ProducerBatch) -> None:
        self._fail(batch, KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"{_place(batch)}: {LOST_TRACK}"))

    # Ends

    def was_away(self, away_s: float) -> None:
        """Nothing could be sent or received for so long: that time does not count against deadlines."""
        for queue in self._active.values():
            for batch in (*queue.queue, *queue.in_flight):
                batch.deadline += away_s

    def expire(self, now: float) -> None:
        for queue in self._active.values():
            if queue.queue and queue.queue[0].deadline <= now:
                for batch in queue.expired(now):
                    queue.given_up(batch, certain=not batch.uncertain)
                    text = f"{_place(batch)}: not delivered within {self.config.record_timeout_ms} ms"
                    unknown = self._cluster.errors.get(batch.topic)
                    self._fail(batch, TimedOut(text if unknown is None else f"{text} ({unknown.name})"))
        for topic, waiting in list(self._waiting.items()):
            if waiting[0].deadline <= now:
                code = self._cluster.errors.get(topic, ErrorCode.LEADER_NOT_AVAILABLE)
                text = f"topic '{topic}': no metadata within {self.config.record_timeout_ms} ms ({code.name})"
                self._fail_waiting(topic, lambda record: record.deadline <= now, TimedOut(text))

    def close(self) -> None:
        """Fail everything that is still here."""
        error = Closed("producer")
        for queue in self._queues.values():
            self._release(queue.fail_all(error))
        for topic in list(self._waiting):
            self._fail_waiting(topic, lambda _: True, error)
        self._active.clear()

    def _fail_waiting(self, topic: str, is_over: Callable[[_UnroutedRecord], bool], error: KafkaError) -> None:
        waiting = self._waiting.pop(topic)
        kept = [record for record in waiting if not is_over(record)]
        if kept:
            self._waiting[topic] = kept
        for record in waiting:
            if is_over(record):
                self.buffered_bytes -= record.memory_bytes
                self._is_lost(error)
                record.delivery.resolve(error)

    def _acknowledge(self, batch: ProducerBatch, base_offset: int, log_append_time_ms: int) -> None:
        self.buffered_bytes -= batch.memory_bytes
        batch.acknowledge(base_offset, log_append_time_ms)

    def _fail(self, batch: ProducerBatch, error: KafkaError) -> None:
        self.buffered_bytes -= batch.memory_bytes
        self._is_lost(error)
        batch.fail(error)

    def _is_lost(self, error: KafkaError) -> None:
        """A record will not be in the log, as far as is known: then its transaction must not be committed."""
        if self.transaction is not None:
            self.transaction.batch_failed(error)

    def _release(self, batches: Sequence[ProducerBatch]) -> None:
        self.buffered_bytes -= sum(batch.memory_bytes for batch in batches)


def _place(batch: ProducerBatch) -> str:
    return f"{batch.records_count} records for {batch.topic}-{batch.partition}"


def _explain(batch: ProducerBatch, answer: ProduceResponse.PartitionProduceResponse) -> str:
    texts = [answer.error_message or ""]
    texts += [f"record {e.batch_index}: {e.batch_index_error_message}" for e in answer.record_errors[:3]]
    return f"{_place(batch)}: {said}" if (said := "; ".join(filter(None, texts))) else _place(batch)
