"""What is asked of brokers and what they answer, taken from the bytes: Produce, Fetch, ListOffsets,
OffsetForLeaderEpoch, groups, transactions.

Always true: an answer is shown when its last byte leaves the broker, whether or not it will arrive. Of a Fetch within a
session all partitions of the session are known, as they stood when it was sent (KIP-227). What is produced is kept for
a while and read only where a judge asks.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from strandline.records.header import BatchHeader, read_header
from strandline.wire import fetch, messages, produce
from strandline.wire.headers import read_request_header, read_response_header

if TYPE_CHECKING:
    from strandline.wire.stubs.fetch import FetchResponse

PRODUCE, FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH = 0, 1, 2, 23
OFFSET_COMMIT, OFFSET_FETCH, OFFSET_DELETE, DELETE_GROUPS = 8, 9, 47, 42
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT = 11, 12, 13, 14, 68
GROUP_APIS = frozenset(
    {
        OFFSET_COMMIT,
        OFFSET_FETCH,
        OFFSET_DELETE,
        DELETE_GROUPS,
        JOIN_GROUP,
        HEARTBEAT,
        LEAVE_GROUP,
        SYNC_GROUP,
        CONSUMER_GROUP_HEARTBEAT,
    }
)
INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN = 22, 24, 25
END_TXN, WRITE_TXN_MARKERS, TXN_OFFSET_COMMIT = 26, 27, 28
TRANSACTION_APIS = frozenset(
    {INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, WRITE_TXN_MARKERS, TXN_OFFSET_COMMIT}
)
ANSWERED = frozenset({FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH})
LATEST = -1
"""As ListOffsets asks for the end of a log."""
CONSUMER = -1
_FULL_EPOCH = 0
_SESSION_ID = struct.Struct(">5x6xi")
"""In the answer to a flexible Fetch: behind the header, the throttle time and the error."""
_FETCH_ERROR = struct.Struct(">5x4xh")
_CORRELATION_ID = struct.Struct(">i")
_ACKS = struct.Struct(">h")
"""Of a flexible Produce, behind the transactional id, which has a length of one byte."""

NamedPartition = tuple[str | bytes, int]
"""A partition: its topic's name or id, and its number."""
PRODUCED_MAX = 64
"""So many are kept for each broker: more than can be under way to it."""
HeldSessions = dict[tuple[int, int], dict[NamedPartition, "AskedPosition"]]
"""By broker and session id: what it holds."""


class AskedPosition(NamedTuple):
    """Of one partition."""

    leader_epoch: int
    """As the one who asks knows it; -1 if it does not say."""
    offset: int = -1
    timestamp: int = 0
    """In ListOffsets."""


class FollowerFetches:
    """What followers have asked of each broker, whether or not it has arrived or was answered."""

    def __init__(self) -> None:
        self.last: dict[tuple[int, int], Mapping[NamedPartition, AskedPosition]] = {}
        """By broker and follower: all partitions of its newest Fetch."""
        self.ever: set[tuple[int, int, NamedPartition, AskedPosition]] = set()
        """Broker, follower, and a partition with what was once asked of it."""

    def add(
        self,
        broker_id: int,
        follower_id: int,
        asked: Mapping[NamedPartition, AskedPosition],
        named: Iterable[NamedPartition],
    ) -> None:
        self.last[broker_id, follower_id] = asked
        self.ever.update((broker_id, follower_id, place, asked[place]) for place in named)


class PartitionAnswer(NamedTuple):
    """Of one partition."""

    error_code: int
    has_data: bool
    """It has something that only a leader of that epoch may answer: records, a divergence, an offset."""
    is_parted: bool = False
    """It has a divergence."""
    offset: int = -1
    """In the answer to a Produce, where the batch begins; to a ListOffsets, what was asked for."""


class BrokerExchange:
    """One request, and what was answered once it was."""

    __slots__ = (
        "acks",
        "api_key",
        "asked",
        "asked_at",
        "body_at",
        "frame",
        "named",
        "produced",
        "reads_committed",
        "replica_epoch",
        "replica_id",
        "response",
        "transactional_id",
        "version",
    )

    def __init__(self, api_key: int, version: int, asked_at: float, produced: deque[bytes] | None = None) -> None:
        self.api_key = api_key
        self.version = version
        self.asked_at = asked_at
        """When its last byte left."""
        self.replica_id = CONSUMER
        self.replica_epoch = -1
        """Of a follower: its broker epoch."""
        self.acks = 0
        """Of a Produce."""
        self.reads_committed = False
        """Of a Fetch or a ListOffsets: it is about what is stable."""
        self.asked: Mapping[NamedPartition, AskedPosition] = {}
        """Of all partitions of its session, if it has one."""
        self.named: frozenset[NamedPartition] = frozenset()
        """Those that this very request speaks of."""
        self.produced: deque[bytes] = deque() if produced is None else produced
        """The newest Produce requests to the same broker; it goes on growing."""
        self.transactional_id: str | None = None
        """Of a Produce that is part of a transaction; then also its frame, and where in that its body begins."""
        self.frame, self.body_at = b"", 0
        self.response = b""

    @property
    def is_refused(self) -> bool:
        """The whole of a flexible Fetch was."""
        return bool(_FETCH_ERROR.unpack_from(self.response)[0])

    def message(self) -> Any:
        """The answer, as `api_key` says."""
        _, position = read_response_header(self.api_key, self.version, self.response)
        return messages.decode_response(self.api_key, self.version, self.response, position)

    def batches(self) -> Iterator[tuple[NamedPartition, BatchHeader]]:
        """Of a Produce that is part of a transaction: the header of each batch."""
        request = produce.parse(self.version, memoryview(self.frame), self.body_at)
        for topic, partitions in request.topics:
            for index, records in partitions:
                if records is not None:
                    yield (topic, index), read_header(records)

    def answers(self) -> dict[NamedPartition, PartitionAnswer]:
        """What was said of each partition."""
        message = self.message()
        match self.api_key:
            case 0:
                return {
                    (topic.name or bytes(topic.topic_id), answer.index): PartitionAnswer(
                        answer.error_code, True, offset=answer.base_offset
                    )
                    for topic in message.responses
                    for answer in topic.partition_responses
                }
            case 1:
                by_id = self.version >= fetch.TOPIC_ID_SINCE
                return {
                    (bytes(topic.topic_id) if by_id else topic.topic, answer.partition_index): _of_fetch(answer)
                    for topic in message.responses
                    for answer in topic.partitions
                }
            case 2:
                return {
                    (topic.name, answer.partition_index): PartitionAnswer(
                        answer.error_code, answer.offset >= 0, offset=answer.offset
                    )
                    for topic in message.topics
                    for answer in topic.partitions
                }
            case _:
                return {
                    (topic.topic, answer.partition): PartitionAnswer(answer.error_code, answer.end_offset >= 0)
                    for topic in message.topics
                    for answer in topic.partitions
                }


def _of_fetch(answer: FetchResponse.PartitionData) -> PartitionAnswer:
    parted = getattr(answer, "diverging_epoch", None)
    is_parted = parted is not None and parted.epoch >= 0
    return PartitionAnswer(answer.error_code, bool(answer.records) or is_parted, is_parted)


class HeldConnection(Protocol):
    """The client's end of a connection, for faults that are about this very request."""

    def lose_replies(self) -> None:
        """The connection ends before the answer has arrived."""

    def delay_bytes(self, until: float) -> None:
        """Nothing arrives before then, either way."""


class CoordinatorExchange:
    """A request about a group, or about a transaction: shown when it is asked, and once more with its answer."""

    __slots__ = (
        "answered_at",
        "api_key",
        "asked_at",
        "broker_id",
        "connection",
        "request",
        "response",
        "version",
        "who",
    )

    def __init__(
        self,
        broker_id: int,
        who: str,
        api_key: int,
        version: int,
        asked_at: float,
        connection: HeldConnection | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.who = who
        """The host that asks."""
        self.api_key = api_key
        self.version = version
        self.asked_at = asked_at
        self.answered_at: float | None = None
        self.connection = connection
        """None if it is not known."""
        self.request: Any = None
        """As `api_key` says: the message of any API about groups or transactions. Of a Produce what it says of its
        transaction, and no response: that is a `BrokerExchange`."""
        self.response: Any = None

    def hold(self, until: float) -> None:
        """Nothing arrives before then on its connection."""
        assert self.connection is not None, "it is known where it was sent"
        self.connection.delay_bytes(until)


class RequestReader:
    """The requests of one connection to a broker."""

    def __init__(
        self,
        broker_id: int,
        sessions: HeldSessions,
        produced: deque[bytes],
        report: Callable[[int, BrokerExchange], None],
        on_group_exchange: Callable[[CoordinatorExchange], None] = lambda exchange: None,
        who: str = "",
        fetches: FollowerFetches | None = None,
        on_response: Callable[[bytes], None] = lambda frame: None,
        on_transaction_exchange: Callable[[CoordinatorExchange], None] = lambda exchange: None,
        connection: HeldConnection | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.fetches = fetches or FollowerFetches()
        self.on_response = on_response
        """Called with every response, whatever it is about."""
        self.on_group_exchange = on_group_exchange
        self.on_transaction_exchange = on_transaction_exchange
        self.connection = connection
        self.who = who
        self.unanswered_of_coordinators: dict[int, CoordinatorExchange] = {}
        self.sessions = sessions
        self.produced = produced
        self.report = report
        self.unanswered: dict[int, BrokerExchange] = {}
        """By correlation id."""

    def read(self, frame: bytes, now: float) -> None:
        api_key = int.from_bytes(frame[:2], "big")
        if api_key == PRODUCE:
            self.produced.append(frame)
            header = read_request_header(frame)
            exchange = BrokerExchange(api_key, header.api_version, now, self.produced)
            id_bytes = max(frame[header.body_position] - 1, 0)
            exchange.acks = _ACKS.unpack_from(frame, header.body_position + 1 + id_bytes)[0]
            self.unanswered[header.correlation_id] = exchange
            if id_bytes:
                exchange.transactional_id = str(
                    frame[header.body_position + 1 : header.body_position + 1 + id_bytes], "utf-8"
                )
                exchange.frame, exchange.body_at = frame, header.body_position
                asked = self._begin(api_key, header.api_version, now)
                asked.request = exchange
                self.on_transaction_exchange(asked)
        elif api_key in ANSWERED:
            header = read_request_header(frame)
            exchange = BrokerExchange(api_key, header.api_version, now, self.produced)
            if api_key == FETCH:
                self._read_fetch(exchange, frame, header.body_position)
            else:
                self._read_other(exchange, frame, header.body_position)
            self.unanswered[header.correlation_id] = exchange
        elif api_key in GROUP_APIS or api_key in TRANSACTION_APIS:
            header = read_request_header(frame)
            asked = self._begin(api_key, header.api_version, now)
            asked.request = messages.decode_request(api_key, header.api_version, frame, header.body_position)
            self.unanswered_of_coordinators[header.correlation_id] = asked
            self.tell(asked)

    def _begin(self, api_key: int, version: int, now: float) -> CoordinatorExchange:
        return CoordinatorExchange(self.broker_id, self.who, api_key, version, now, self.connection)

    def tell(self, exchange: CoordinatorExchange) -> None:
        if exchange.api_key in TRANSACTION_APIS:
            self.on_transaction_exchange(exchange)
        else:
            self.on_group_exchange(exchange)

    def _read_fetch(self, exchange: BrokerExchange, frame: bytes, position: int) -> None:
        request = fetch.parse(exchange.version, memoryview(frame), position)
        named = {
            (topic, p.partition): AskedPosition(p.current_leader_epoch, p.fetch_offset)
            for topic, partitions in request.topics
            for p in partitions
        }
        exchange.replica_id, exchange.replica_epoch = request.replica_id, request.replica_epoch
        exchange.reads_committed = bool(request.isolation_level)
        exchange.named, exchange.asked = frozenset(named), named
        if request.session_epoch > _FULL_EPOCH:
            held = dict(self.sessions.get((self.broker_id, request.session_id), {}))
            held.update(named)
            for topic, indexes in request.forgotten:
                for index in indexes:
                    held.pop((topic, index), None)
            self.sessions[self.broker_id, request.session_id] = held
            exchange.asked = held
        if request.replica_id != CONSUMER:
            self.fetches.add(self.broker_id, request.replica_id, exchange.asked, exchange.named & exchange.asked.keys())

    def _read_other(self, exchange: BrokerExchange, frame: bytes, position: int) -> None:
        message = messages.decode_request(exchange.api_key, exchange.version, frame, position)
        is_list = exchange.api_key == LIST_OFFSETS
        exchange.reads_committed = is_list and bool(message.isolation_level)
        exchange.asked = {
            (topic.name, asked.partition_index) if is_list else (topic.topic, asked.partition): AskedPosition(
                asked.current_leader_epoch, timestamp=asked.timestamp if is_list else 0
            )
            for topic in message.topics
            for asked in topic.partitions
        }
        exchange.named = frozenset(exchange.asked)


class ResponseReader:
    """The answers on the same connection."""

    def __init__(self, asking: RequestReader) -> None:
        self._asking = asking

    def read(self, frame: bytes, now: float) -> None:
        asking = self._asking
        asking.on_response(frame)
        exchange = asking.unanswered.pop(_CORRELATION_ID.unpack_from(frame)[0], None)
        if exchange is None:
            self._read_coordinator(frame, now)
            return
        exchange.response = frame
        if exchange.api_key == FETCH and exchange.version >= fetch.FLEXIBLE_SINCE:
            (session_id,) = _SESSION_ID.unpack_from(frame)
            if session_id:
                asking.sessions.setdefault((asking.broker_id, session_id), dict(exchange.asked))
        asking.report(asking.broker_id, exchange)

    def _read_coordinator(self, frame: bytes, now: float) -> None:
        asking = self._asking
        exchange = asking.unanswered_of_coordinators.pop(_CORRELATION_ID.unpack_from(frame)[0], None)
        if exchange is not None:
            _, position = read_response_header(exchange.api_key, exchange.version, frame)
            exchange.response = messages.decode_response(exchange.api_key, exchange.version, frame, position)
            exchange.answered_at = now
            asking.tell(exchange)
