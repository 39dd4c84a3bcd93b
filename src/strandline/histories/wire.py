"""The quorum's own messages as they leave a host, taken from the bytes; and what goes to brokers and back, as
`exchanges` has it.

Always true: a message is shown when its last byte leaves, whether or not it will arrive; what no judge asks about is
passed over unread.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from strandline.histories.exchanges import (
    PRODUCED_MAX,
    BrokerExchange,
    CoordinatorExchange,
    FollowerFetches,
    HeldSessions,
    RequestReader,
    ResponseReader,
)
from strandline.sim.pipe import Pipe
from strandline.wire import messages
from strandline.wire.headers import read_request_header, read_response_header

if TYPE_CHECKING:
    from strandline.wire.stubs.alter_partition import AlterPartitionRequest, AlterPartitionResponse

FETCH: Final = 1
VOTE: Final = 52
BEGIN_QUORUM_EPOCH: Final = 53
END_QUORUM_EPOCH: Final = 54
FETCH_SNAPSHOT: Final = 59
READ = frozenset({FETCH, VOTE, BEGIN_QUORUM_EPOCH, END_QUORUM_EPOCH, FETCH_SNAPSHOT})
BROKER_HEARTBEAT = 63
ALTER_PARTITION: Final = 56
ANSWERS_READ = frozenset({VOTE})
_SIZE = struct.Struct(">i")
_FLAT_FETCH = range(15, 19)
"""The versions of Fetch in which the first partition stands at the same place behind the header."""
_FETCH_BODY = struct.Struct(">21xB16xB4xiqi")
"""Up to the first partition's last fetched epoch: how many topics and partitions plus one, and of the partition
current leader epoch, fetch offset and last fetched epoch."""
_HEARTBEAT_BODY = struct.Struct(">iqqx?")
"""Whose, of which broker epoch, how much of the metadata it has, and whether it would like to stop."""
_HEARTBEAT_ERROR = struct.Struct(">9xh")
_SHOULD_SHUT_DOWN_AT = 13
"""In the answer, behind header, throttle time, error, and whether it is caught up and fenced."""
_ONE = 2
"""A length of one, as compact arrays have it."""


PartitionT = TypeVar("PartitionT")
PartitionT_co = TypeVar("PartitionT_co", covariant=True)


class NamesPartitionsOfTopic(Protocol[PartitionT_co]):
    @property
    def partitions(self) -> Sequence[PartitionT_co]: ...


class NamesPartitions(Protocol[PartitionT_co]):
    """A message about partitions, by topic."""

    @property
    def topics(self) -> Sequence[NamesPartitionsOfTopic[PartitionT_co]]: ...


class QuorumMessage(NamedTuple):
    """A request of `source`, or its response to one."""

    source: int
    api_key: int
    epoch: int
    """The sender's, or in a response to Vote the one that was asked for; -1 if it does not say."""
    response: bool = False
    candidate_id: int = -1
    pre_vote: bool = False
    granted: bool = False
    offset: int = -1
    """In a Fetch, from where."""
    last_fetched_epoch: int = -1
    """In a Fetch, the epoch of the record before that offset."""
    exchange: BrokerExchange | None = None
    """If it is no message of the quorum: what a broker, the source, has answered to what."""
    error_code: int = 0
    """In the answer to a heartbeat of a broker; then `offset` is how much of the metadata the broker has."""
    broker_epoch: int = -1
    wants_to_stop: bool = False
    request: AlterPartitionRequest | None = None
    """Of an AlterPartition, with the answer to it."""
    answer: AlterPartitionResponse | None = None

    @property
    def is_vote_granted(self) -> bool:
        return self.api_key == VOTE and self.response and self.granted


class Wiretap:
    """Set as the network's tap. `ids` are the nodes by host, `port` is where controllers listen on each."""

    def __init__(
        self,
        ids: Mapping[str, int],
        port: int,
        report: Callable[[QuorumMessage], None],
        on_group_exchange: Callable[[CoordinatorExchange], None] = lambda exchange: None,
        on_response: Callable[[int, int, bytes], None] | None = None,
        on_transaction_exchange: Callable[[CoordinatorExchange], None] = lambda exchange: None,
    ) -> None:
        """`on_response` is called with every response of a broker: its id, the port, and the bytes."""
        self._hear_group = on_group_exchange
        self._hear_transaction = on_transaction_exchange
        self._hear_frame = on_response
        self._ids = ids
        self._port = port
        self._report = report
        self._streams: dict[int, _FrameStream | None] = {}
        self._sessions: HeldSessions = {}
        self.fetches = FollowerFetches()
        self._produced: dict[int, deque[bytes]] = {}

    def __call__(self, pipe: Pipe, data: bytes) -> None:
        number = pipe.number
        stream = self._streams.get(number, self)
        if stream is self:
            stream = self._streams[number] = self._begin(pipe)
        if isinstance(stream, _FrameStream):
            stream.feed(data)

    def _begin(self, pipe: Pipe) -> _FrameStream | None:
        """Pipes come in pairs: the even one leads from the client to the server."""
        server = pipe.reader if pipe.number % 2 == 0 else pipe.writer
        if server.get_extra_info("sockname")[1] != self._port:
            return self._begin_exchanges(pipe)
        source = self._ids.get(pipe.source)
        if source is None:
            return None
        if pipe.number % 2 == 0:
            return _RequestStream(source, self._report)
        requests = self._streams.get(pipe.number - 1)
        return _ResponseStream(source, self._report, requests.asked) if isinstance(requests, _RequestStream) else None

    def _begin_exchanges(self, pipe: Pipe) -> _FrameStream | None:
        if pipe.number % 2 == 0:
            broker_id = self._ids.get(pipe.target)
            if broker_id is None:
                return None
            produced = self._produced.setdefault(broker_id, deque(maxlen=PRODUCED_MAX))
            asking = RequestReader(
                broker_id,
                self._sessions,
                produced,
                self._exchanged,
                self._hear_group,
                pipe.source,
                self.fetches,
                on_transaction_exchange=self._hear_transaction,
                connection=pipe.writer,
            )
            if self._hear_frame is not None:
                asking.on_response = partial(self._hear_frame, broker_id, pipe.reader.get_extra_info("sockname")[1])
            return _BrokerStream(pipe, asking)
        requests = self._streams.get(pipe.number - 1)
        if isinstance(requests, _BrokerStream) and isinstance(requests.reader, RequestReader):
            return _BrokerStream(pipe, ResponseReader(requests.reader))
        return None

    def _exchanged(self, broker_id: int, exchange: BrokerExchange) -> None:
        self._report(QuorumMessage(broker_id, exchange.api_key, -1, response=True, exchange=exchange))


class _FrameStream:
    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        buffer = self._buffer
        if not buffer and len(data) > 4 and len(data) == 4 + _SIZE.unpack_from(data)[0]:
            self.read(data[4:])
            return
        buffer += data
        while len(buffer) >= 4:
            end = 4 + _SIZE.unpack_from(buffer)[0]
            if len(buffer) < end:
                return
            frame = bytes(buffer[4:end])
            del buffer[:end]
            self.read(frame)

    def read(self, frame: bytes) -> None:
        raise NotImplementedError


class _BrokerStream(_FrameStream):
    """One direction of a connection to a broker."""

    def __init__(self, pipe: Pipe, reader: RequestReader | ResponseReader) -> None:
        super().__init__()
        self.reader = reader
        self._now = pipe.network.loop.time

    def read(self, frame: bytes) -> None:
        self.reader.read(frame, self._now())


class _RequestStream(_FrameStream):
    def __init__(self, source: int, report: Callable[[QuorumMessage], None]) -> None:
        super().__init__()
        self.source = source
        self.report = report
        self.asked: dict[int, tuple[int, int, QuorumMessage]] = {}
        """By correlation id: version and request of those whose answers are of interest."""

    def read(self, frame: bytes) -> None:
        api_key = int.from_bytes(frame[:2], "big")
        if api_key not in READ:
            if api_key == BROKER_HEARTBEAT:
                self._heartbeat(frame)
            elif api_key == ALTER_PARTITION:
                self._alter_partition(frame)
            return
        if api_key == FETCH and (sent := self._fetch(frame)) is not None:
            self.report(sent)
            return
        header = read_request_header(frame)
        sent = _request(self.source, header.api_key, header.api_version, frame, header.body_position)
        if sent is not None:
            if header.api_key in ANSWERS_READ:
                self.asked[header.correlation_id] = (header.api_key, header.api_version, sent)
            self.report(sent)

    def _heartbeat(self, frame: bytes) -> None:
        """Its answer says in `granted` whether the broker may stop."""
        broker_id, epoch, offset, wants_to_stop = _HEARTBEAT_BODY.unpack_from(frame, _body_at(frame))
        sent = QuorumMessage(
            self.source,
            BROKER_HEARTBEAT,
            -1,
            candidate_id=broker_id,
            offset=offset,
            broker_epoch=epoch,
            wants_to_stop=wants_to_stop,
        )
        self.asked[_SIZE.unpack_from(frame, 4)[0]] = (BROKER_HEARTBEAT, 0, sent)
        if wants_to_stop:
            self.report(sent)

    def _alter_partition(self, frame: bytes) -> None:
        header = read_request_header(frame)
        message = messages.decode_request(ALTER_PARTITION, header.api_version, frame, header.body_position)
        sent = QuorumMessage(self.source, ALTER_PARTITION, -1, candidate_id=message.broker_id, request=message)
        self.asked[header.correlation_id] = (ALTER_PARTITION, header.api_version, sent)

    def _fetch(self, frame: bytes) -> QuorumMessage | None:
        """A Fetch of the metadata log, without reading all of it; None if that can't be done.

        By far the most frequent request: of it, three numbers are wanted."""
        if int.from_bytes(frame[2:4], "big") not in _FLAT_FETCH:
            return None
        position = _body_at(frame)
        if frame[position - 1]:
            return None  # tagged fields
        topics, partitions, epoch, offset, last_epoch = _FETCH_BODY.unpack_from(frame, position)
        if (topics, partitions) != (_ONE, _ONE):
            return None
        return QuorumMessage(self.source, FETCH, epoch, offset=offset, last_fetched_epoch=last_epoch)


class _ResponseStream(_FrameStream):
    def __init__(
        self, source: int, report: Callable[[QuorumMessage], None], asked: dict[int, tuple[int, int, QuorumMessage]]
    ) -> None:
        super().__init__()
        self.source = source
        self.report = report
        self._asked = asked

    def read(self, frame: bytes) -> None:
        asked = self._asked.pop(_SIZE.unpack_from(frame)[0], None)
        if asked is None:
            return
        api_key, version, request = asked
        if api_key == BROKER_HEARTBEAT:
            (code,) = _HEARTBEAT_ERROR.unpack_from(frame)
            should_stop = request.wants_to_stop and bool(frame[_SHOULD_SHUT_DOWN_AT])
            answered = request._replace(source=self.source, response=True, granted=should_stop, error_code=code)
            self.report(answered)
            return
        _, position = read_response_header(api_key, version, frame)
        if api_key == ALTER_PARTITION:
            answer = messages.decode_response(ALTER_PARTITION, version, frame, position)
            self.report(request._replace(source=self.source, response=True, answer=answer))
            return
        partition = _only_partition(messages.decode_response(VOTE, version, frame, position))
        granted = partition is not None and bool(partition.vote_granted)
        self.report(request._replace(source=self.source, response=True, granted=granted))


def _body_at(frame: bytes) -> int:
    """Where the body of a flexible request begins, if its header has no tagged fields."""
    return 11 + max(int.from_bytes(frame[8:10], "big", signed=True), 0)


def _only_partition(message: NamesPartitions[PartitionT]) -> PartitionT | None:
    for topic in message.topics:
        for partition in topic.partitions:
            return partition
    return None


def _request(source: int, api_key: int, version: int, frame: bytes, position: int) -> QuorumMessage | None:
    """None if it names no partition."""
    match api_key:
        case 52:
            vote = _only_partition(messages.decode_request(VOTE, version, frame, position))
            if vote is not None:
                return QuorumMessage(
                    source,
                    api_key,
                    vote.replica_epoch,
                    candidate_id=vote.replica_id,
                    pre_vote=bool(getattr(vote, "pre_vote", False)),
                )
        case 53:
            begun = _only_partition(messages.decode_request(BEGIN_QUORUM_EPOCH, version, frame, position))
            if begun is not None:
                return QuorumMessage(source, api_key, begun.leader_epoch)
        case 54:
            ended = _only_partition(messages.decode_request(END_QUORUM_EPOCH, version, frame, position))
            if ended is not None:
                return QuorumMessage(source, api_key, ended.leader_epoch)
        case 59:
            snapshot = _only_partition(messages.decode_request(FETCH_SNAPSHOT, version, frame, position))
            if snapshot is not None:
                return QuorumMessage(source, api_key, snapshot.current_leader_epoch)
        case _:
            fetched = _only_partition(messages.decode_request(FETCH, version, frame, position))
            if fetched is not None:
                return QuorumMessage(
                    source,
                    api_key,
                    fetched.current_leader_epoch,
                    offset=fetched.fetch_offset,
                    last_fetched_epoch=fetched.last_fetched_epoch,
                )
    return None
