"""The producer: records are taken at once and sent in the background; each has a delivery to await.

    delivery = producer.send("topic", b"value", key=b"key")
    await delivery                      # RecordMetadata, or KafkaError
    await producer.drain()              # between many sends: wait while the buffer is more than half full

How order and once-ness are kept: `core/partition_queue.py`. What this file adds: one coroutine, the sender, does all
sending, so requests of a connection leave in the order in which the core made them; a reply that is lost with its
connection is reported to the core, which sends the same bytes again on the next one.

With acks=0 a broker answers nothing. So `flush` puts a question behind what was sent on each connection: its answer
says that everything before it has arrived, and is not in a buffer of ours.

Always true: after `close` every delivery is resolved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from strandline.client.config import ProducerConfig
from strandline.client.core.backoff import delay_s
from strandline.client.core.batches import Buffer, ProducerIdentity, RecordDelivery
from strandline.client.core.cluster_metadata import METADATA
from strandline.client.core.producer import INIT_PRODUCER_ID, PRODUCE, ProduceCall, ProducerCore
from strandline.client.core.whole_batches import Receipt
from strandline.client.errors import Closed, ConnectionLost
from strandline.client.flow.channel import Channel
from strandline.client.flow.client import FlowClient
from strandline.client.flow.io import Condition, Future, sleep
from strandline.client.flow.retry import UNKNOWN_ATTEMPTS_MAX, check, retrying
from strandline.errors import ErrorCode, KafkaError
from strandline.records.ready import ReadyBatch
from strandline.records.record import Headers
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.client.core.group.member import GroupMetadata
    from strandline.client.core.group.offsets import OffsetAndMetadata
    from strandline.client.flow.transactions import FlowTransactions, TransactionBlock
    from strandline.ids import TopicPartition
    from strandline.wire.stubs.produce import ProduceResponse

METADATA_RETRY_S = 0.1


class FlowProducer:
    def __init__(
        self, client: FlowClient, config: ProducerConfig | None = None, *, allow_auto_topic_creation: bool = True
    ) -> None:
        self._client = client
        self._io = client.io
        self._core = ProducerCore(
            config or ProducerConfig(), client.cluster, client.config.retry_backoff, client.randomness
        )
        self._transactions: FlowTransactions | None = None
        if self._core.transaction is not None:
            from strandline.client.flow.transactions import FlowTransactions  # few processes need it

            self._transactions = FlowTransactions(client, self._core, self._core.transaction, self._wake_sender_again)
        self._allow_auto_topic_creation = allow_auto_topic_creation
        self._wake = Condition(self._io)
        self._is_woken = False
        self._progress = Condition(self._io)
        self._is_sending = False
        self._is_closed = False
        self._connecting: set[int] = set()
        self._is_refreshing = self._is_identifying = False
        self._refreshes_in_vain = 0
        """In a row."""
        self._unanswered: dict[Channel, int] = {}
        """With acks=0, the bytes of which it is not known that they have left us."""
        self._asked: set[Channel] = set()

    def send(
        self,
        topic: str,
        value: Buffer | None,
        key: Buffer | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> RecordDelivery:
        """Take a record. RecordTooLarge or BufferExhausted at once; whatever else goes wrong is the delivery's."""
        if self._is_closed:
            raise Closed("producer")
        delivery = RecordDelivery(self._io.future, self._io.wall_ms() if timestamp is None else timestamp)
        if self._core.append(topic, key, value, headers, partition, delivery, self._io.now()):
            self._wake_sender()
        return delivery

    def send_whole(self, topic: str, partition: int, batch: ReadyBatch, receipt: Receipt) -> None:
        """Take a whole batch for this partition; BufferExhausted if there is no room.
        What becomes of it is reported to the receipt.
        """
        if self._is_closed:
            raise Closed("producer")
        self._core.append_whole(topic, partition, batch, receipt, self._io.now())
        self._wake_sender()

    def has_room(self, size_bytes: int) -> bool:
        unanswered_bytes = sum(self._unanswered.values())
        is_full = unanswered_bytes and unanswered_bytes + size_bytes > self._core.config.buffer_memory
        return not is_full and self._core.has_room(size_bytes)

    async def room(self, size_bytes: int, is_over: Callable[[], bool]) -> None:
        """Wait until there is room for so many bytes, or it is over."""
        while not (self.has_room(size_bytes) or is_over() or self._is_closed):
            self._ask_what_arrived()
            await self._progress.wait()

    def was_away(self, away_s: float) -> None:
        """The caller did not let us run for so long. That counts for no timeout."""
        self._core.was_away(away_s)
        for link in self._core.busy_links:
            assert isinstance(link, Channel)
            link.wait_anew(self._core.config.request_timeout_ms / 1000)

    async def partitions_count(self, topic: str) -> int:
        """How many the topic has now.
        It is made if the broker makes topics by itself; else UNKNOWN_TOPIC_OR_PARTITION soon.
        """
        cluster = self._client.cluster
        deadline = self._io.now() + self._client.config.default_api_timeout_ms / 1000
        failures = 0
        while True:
            try:
                await self._client.refresh([topic], allow_auto_topic_creation=self._allow_auto_topic_creation)
                if (count := cluster.partitions_count(topic)) is not None:
                    return count
                error = KafkaError(cluster.errors.get(topic, ErrorCode.LEADER_NOT_AVAILABLE), f"topic '{topic}'")
            except KafkaError as unreachable:
                error = unreachable
            failures += 1
            wait_s = delay_s(self._client.config.retry_backoff, failures, self._client.randomness)
            is_unknown = error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and failures >= UNKNOWN_ATTEMPTS_MAX
            if is_unknown or not error.retriable or isinstance(error, Closed) or self._io.now() + wait_s > deadline:
                raise error
            await sleep(self._io, wait_s)

    async def drain(self) -> None:
        """Wait until at most half of buffer_memory is taken."""
        while 2 * self._core.buffered_bytes > self._core.config.buffer_memory and not self._is_closed:
            self._wake_sender()
            await self._progress.wait()

    async def flush(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Wait until everything that was sent is resolved, or it is over, without lingering."""
        self._core.is_flushing = True
        try:
            if self._core.has_unfinished:
                self._wake_sender()
            while self._core.has_unfinished and not self._is_closed and not is_over():
                await self._progress.wait()
                # It reports progress whenever it looks for work: to wake it for that would never end.
                if not self._is_sending:
                    self._wake_sender()
            while self._unanswered and not self._is_closed and not is_over():
                self._ask_what_arrived()
                await self._progress.wait()
        finally:
            self._core.is_flushing = False

    async def close(self, timeout_s: float | None = None) -> None:
        """Flush for at most this long, then fail what is left. The client stays open: it is not ours."""
        if self._is_closed:
            return
        if self._transactions is not None and timeout_s != 0:
            await self._transactions.leave(None if timeout_s is None else int(timeout_s * 1000))
        if timeout_s is not None:
            timer = self._io.call_later(timeout_s, self._abandon)
            await self.flush()
            timer.cancel()
        else:
            await self.flush()
        self._abandon()

    def _abandon(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._core.close()
            if self._transactions is not None:
                self._transactions.close()
            self._wake.notify_all()
            self._progress.notify_all()

    async def __aenter__(self) -> FlowProducer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await (self.close() if error is None else self.close(timeout_s=0))

    # Transactions

    def transaction(self) -> TransactionBlock:
        """`async with producer.transaction():` commits at its end, and aborts if an exception leaves it."""
        return self._require_transactions().block()

    async def init_transactions(self, timeout_ms: int | None = None) -> None:
        """Fence every producer that had the transactional id, and have its transaction ended.
        Again: give up a transaction whose end could not be learned.
        """
        await self._require_transactions().init(timeout_ms)

    def begin_transaction(self) -> None:
        self._require_transactions().begin()

    async def commit_transaction(self, timeout_ms: int | None = None) -> None:
        """Flush and commit. TransactionAbortable: abort it. TimedOut: what became of it is not known; call again."""
        await self._require_transactions().commit(timeout_ms)

    async def abort_transaction(self, timeout_ms: int | None = None) -> None:
        """Records that have not left are not sent. TimedOut: call again."""
        await self._require_transactions().abort(timeout_ms)

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: GroupMetadata,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit these offsets (of the next record to consume) of a consumer's group with the transaction.
        A group that has gone on without the consumer refuses them.
        """
        await self._require_transactions().send_offsets(offsets, group_metadata, timeout_ms)

    def _require_transactions(self) -> FlowTransactions:
        if self._is_closed:
            raise Closed("producer")
        if self._transactions is None:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "the producer has no transactional_id")
        return self._transactions

    # The sender

    def _wake_sender(self) -> None:
        self._is_woken = True
        if not self._is_sending:
            self._is_sending = True
            self._io.spawn(self._send_all())
        else:
            self._wake.notify_all()

    async def _send_all(self) -> None:
        """Runs while there is something to do; the next record starts it again."""
        try:
            while not self._is_closed:
                self._is_woken = False
                self._send_ready()
                self._start_errands()
                if not self._core.has_unfinished:
                    return
                if not self._is_woken:
                    now = self._io.now()
                    wakeup = self._core.wakeup(now)
                    await self._wake.wait(None if wakeup is None else wakeup - now)
        finally:
            self._is_sending = False
            self._progress.notify_all()
            if self._transactions is not None:
                self._transactions.wake()

    def _send_ready(self) -> None:
        while calls := self._core.drain(self._io.now(), self._client.open_channel):
            for call in calls:
                self._send_call(call)
        self._progress.notify_all()

    def _send_call(self, call: ProduceCall) -> None:
        channel = call.link
        assert isinstance(channel, Channel)
        try:
            if self._core.config.acks == 0:
                channel.send_without_reply(PRODUCE, call.message, version_max=call.version_max)
                self._core.sent_without_reply(call)
                sent_bytes = sum(batch.size_bytes for batch in call.batches)
                self._unanswered[channel] = self._unanswered.get(channel, 0) + sent_bytes
                return
            future = channel.send(PRODUCE, call.message, call.timeout_s, version_max=call.version_max)
        except ConnectionLost as error:
            self._core.lost(call, error, self._io.now())
        except KafkaError as error:
            self._core.refused(call, error)
        else:
            self._io.spawn(self._await_reply(call, future))

    async def _await_reply(self, call: ProduceCall, future: Future[ProduceResponse]) -> None:
        try:
            response = await future
        except KafkaError as error:
            if not self._is_closed:
                self._core.lost(call, error, self._io.now())
        else:
            if not self._is_closed:
                self._core.answered(call, response, self._io.now())
        self._wake_sender_again()

    def _ask_what_arrived(self) -> None:
        for channel in self._unanswered.keys() - self._asked:
            self._asked.add(channel)
            self._io.spawn(self._await_arrival(channel))

    async def _await_arrival(self, channel: Channel) -> None:
        before_bytes = self._unanswered[channel]
        try:
            await channel.send(
                METADATA, messages.request(METADATA)(topics=[]), self._client.config.request_timeout_ms / 1000
            )
        except KafkaError:  # what was under way is lost, and who wants to know chooses other acks
            self._unanswered.pop(channel)
        else:
            self._unanswered[channel] -= before_bytes
            if not self._unanswered[channel]:
                del self._unanswered[channel]
        finally:
            self._asked.discard(channel)
            self._progress.notify_all()

    def _wake_sender_again(self) -> None:
        self._progress.notify_all()
        if not self._is_closed:
            self._wake_sender()

    # Errands: what the core wants besides sending

    def _start_errands(self) -> None:
        core = self._core
        for node_id in core.wants_nodes - self._connecting:
            self._connecting.add(node_id)
            self._io.spawn(self._connect(node_id))
        core.wants_nodes.clear()
        if core.wants_topics and not self._is_refreshing:
            self._is_refreshing = True
            self._io.spawn(self._refresh())
        if core.wants_identity and not self._is_identifying:
            self._is_identifying = True
            self._io.spawn(self._identify())
        if self._transactions is not None:
            self._transactions.wake()

    async def _connect(self, node_id: int) -> None:
        try:
            await self._client.channel(node_id)
        except KafkaError:
            # The leader may be another by now.
            self._core.wants_topics.update(self._client.cluster.topics)
            await sleep(self._io, METADATA_RETRY_S)
        finally:
            self._connecting.discard(node_id)
            self._wake_sender_again()

    async def _refresh(self) -> None:
        core = self._core
        topics = set(core.wants_topics)
        core.wants_topics.clear()
        unexpected: Exception | None = None
        try:
            try:
                await self._client.refresh(topics, allow_auto_topic_creation=self._allow_auto_topic_creation)
                core.metadata_changed(self._io.now())
            except Exception as error:
                # Whatever it was, who waits for these topics does not ask for them again.
                core.wants_topics |= topics
                unexpected = None if isinstance(error, KafkaError) else error
            if core.wants_topics or core.lacks_leader:  # to ask at once would only bring the same answer
                self._refreshes_in_vain += 1
                backoff = self._client.config.retry_backoff
                await sleep(self._io, delay_s(backoff, self._refreshes_in_vain, self._client.randomness))
            else:
                self._refreshes_in_vain = 0
            if unexpected is not None:
                raise unexpected
        finally:
            self._is_refreshing = False
            self._wake_sender_again()

    async def _identify(self) -> None:
        try:
            self._core.identified(await retrying(self._client, self._init_producer_id))
        except KafkaError as error:
            self._core.identity_refused(error)
        finally:
            self._is_identifying = False
            self._wake_sender_again()

    async def _init_producer_id(self) -> ProducerIdentity:
        message = messages.request(INIT_PRODUCER_ID)(transactional_id=None, transaction_timeout_ms=(1 << 31) - 1)
        response = await self._client.request(None, INIT_PRODUCER_ID, message)
        check(response.error_code, "no producer id")
        if response.producer_id < 0:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker gave no producer id")
        return ProducerIdentity(response.producer_id, response.producer_epoch)
