"""One connection to a broker, without the socket: bytes in, replies out.

The first request is ApiVersions; until its answer is there, `ready` is false and nothing else may be sent. Replies come
in the order of their requests, so the oldest request without a reply is the one that the next frame answers.

Always true: a reply is matched by order and by correlation id, and a frame that fits neither ends the connection; every
request has a deadline, and a connection on which one has passed is dead: whatever else was in flight is lost with it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from strandline.client.core import versions
from strandline.client.core.frames import Frames, size_of
from strandline.client.core.produce_request import PRODUCE, parts_of
from strandline.client.core.versions import ApiVersions
from strandline.client.errors import ProtocolViolation
from strandline.ports import Buffer
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import API_VERSIONS, read_response_header, request_header

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

C = TypeVar("C")

FRAME_BYTES_MAX = 128 * 1024 * 1024
"""The largest reply we take. A Fetch of 50 MiB fits, even if its first batch is larger than asked for."""
CORRELATION_ID_MAX = 0x7FFF_FFFF


class InFlightRequest(Generic[C]):
    """One request in flight. `context` is the shell's own, to find who is waiting;
    `is_raw` if they read the reply themselves.
    """

    __slots__ = ("api_key", "context", "correlation_id", "deadline", "is_raw", "version")

    def __init__(
        self, api_key: int, version: int, correlation_id: int, deadline: float, context: C | None, is_raw: bool
    ) -> None:
        self.is_raw = is_raw
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.deadline = deadline
        self.context = context


class RawReply(NamedTuple):
    """A reply as it came: its body begins at `position` of the frame."""

    version: int
    frame: Buffer
    position: int


class Reply(NamedTuple, Generic[C]):
    request: InFlightRequest[C]
    message: ApiResponse | RawReply


class ClientConnection(Generic[C]):
    def __init__(self, client_id: str, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self.versions: ApiVersions | None = None
        self.in_flight: deque[InFlightRequest[C]] = deque()
        self._client_id = client_id
        self._frames = Frames(frame_bytes_max)
        self._correlation_id = 0

    @property
    def ready(self) -> bool:
        return self.versions is not None

    def open(self, deadline: float) -> bytes:
        """The first bytes to send."""
        return self._ask_versions(versions.NEWEST, deadline)

    def send(
        self,
        api_key: int,
        message: ApiRequest,
        deadline: float,
        context: C | None = None,
        *,
        version_max: int | None = None,
        version_min: int = 0,
        expects_reply: bool = True,
        is_raw: bool = False,
    ) -> list[Buffer]:
        """The bytes of this request, to be written one part after the other.
        They do not change while it is in flight.
        """
        assert self.versions is not None, "nothing is sent before the versions are known"
        version = self.versions.pick(api_key, version_max, version_min)
        body: list[Buffer]
        if api_key == PRODUCE:  # of all requests, only this one is large
            assert isinstance(message, messages.request(PRODUCE))
            body = parts_of(version, message)
        else:
            body = [messages.encode_request(api_key, version, message)]
        return self._frame(api_key, version, body, deadline, context, expects_reply, is_raw)

    def receive(self, data: bytes) -> tuple[list[Reply[C]], bytes]:
        """The replies in these bytes, and what to send because of them. ProtocolViolation ends the connection."""
        return self._read(self._frames.feed(data))

    def space(self) -> memoryview | None:
        """Where the next bytes belong, if a large reply is on its way;
        what was written there is reported with `filled`.
        """
        return self._frames.space()

    def filled(self, count: int) -> list[Reply[C]]:
        """The reply that so many bytes in the space complete."""
        return self._read(self._frames.filled(count))[0]

    def _read(self, frames: list[Buffer]) -> tuple[list[Reply[C]], bytes]:
        """If one of them can't be read, none is taken: their requests are all still in flight."""
        replies: list[Reply[C]] = []
        outgoing = b""
        for body in frames:
            try:
                request, position = self._match(body)
                if self.versions is None:
                    outgoing += self._negotiate(request, body[position:])
                elif request.is_raw:
                    replies.append(Reply(request, RawReply(request.version, body, position)))
                else:
                    message = messages.decode_response(request.api_key, request.version, body, position)
                    replies.append(Reply(request, message))
                self.in_flight.popleft()
            except (MalformedRequest, ProtocolViolation) as error:
                self.in_flight.extendleft(reply.request for reply in reversed(replies))
                if isinstance(error, ProtocolViolation):
                    raise
                raise ProtocolViolation(f"a reply cannot be read: {error}") from None
        return replies, outgoing

    def deadline(self) -> float | None:
        """When the first of the requests in flight is given up."""
        return min((request.deadline for request in self.in_flight), default=None)

    def _match(self, body: Buffer) -> tuple[InFlightRequest[C], int]:
        """The request that this frame answers, and where the frame's body begins."""
        if not self.in_flight:
            raise ProtocolViolation("a reply to nothing that was asked")
        request = self.in_flight[0]
        correlation_id, position = read_response_header(request.api_key, request.version, body)
        if correlation_id != request.correlation_id:
            raise ProtocolViolation(f"a reply to request {correlation_id} where {request.correlation_id} is next")
        return request, position

    def _negotiate(self, request: InFlightRequest[C], body: Buffer) -> bytes:
        answer = versions.answer(request.version, bytes(body))
        if isinstance(answer, ApiVersions):
            self.versions = answer
            return b""
        return self._ask_versions(answer, request.deadline)

    def _ask_versions(self, version: int, deadline: float) -> bytes:
        return b"".join(self._frame(API_VERSIONS, version, [versions.question(version)], deadline, None, True))

    def _frame(
        self,
        api_key: int,
        version: int,
        body: list[Buffer],
        deadline: float,
        context: C | None,
        expects_reply: bool,
        is_raw: bool = False,
    ) -> list[Buffer]:
        self._correlation_id = (self._correlation_id + 1) & CORRELATION_ID_MAX
        if expects_reply:
            self.in_flight.append(InFlightRequest(api_key, version, self._correlation_id, deadline, context, is_raw))
        header = request_header(api_key, version, self._correlation_id, self._client_id)
        return [size_of(header, *body), header, *body]
