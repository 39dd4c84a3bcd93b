"""Requests of one API from one host of the stage to another, and their responses, decoded from the wire.

Always true: capturing changes nothing; a request is recorded when its last byte has left, its response when that one's last byte
has.
"""

from __future__ import annotations

import struct
from typing import Any

from strandline.sim.pipe import Pipe
from strandline.stories.stage import Stage
from strandline.wire import messages
from strandline.wire.headers import read_request_header, read_response_header

PRODUCE, FETCH, LIST_OFFSETS = 0, 1, 2
_SIZE = struct.Struct(">i")


class CapturedRequest:
    """A request, and its response once there is one."""

    def __init__(self, api_key: int, version: int, request: Any) -> None:
        self.api_key = api_key
        self.version = version
        self.request = request
        self.response: Any = None


class RequestCapture:
    """Everything from now on; a frame of which a part was sent before is not decoded."""

    def __init__(self, stage: Stage, source: str, target: str, api_key: int) -> None:
        network = stage.world.network
        self.exchanges: list[CapturedRequest] = []
        self._hosts = tuple(stage[name].host if name in stage.nodes else name for name in (source, target))
        self._api_key = api_key
        self._streams: dict[int, bytearray] = {}
        self._open: dict[tuple[int, int], CapturedRequest] = {}
        """By the pipe of the response and the correlation id."""
        self._others = network.tap
        network.tap = self

    def __call__(self, pipe: Pipe, data: bytes) -> None:
        if self._others is not None:
            self._others(pipe, data)
        # Pipes come in pairs: the even one leads from the client to the server.
        is_request = pipe.number % 2 == 0
        if (pipe.source, pipe.target) != (self._hosts if is_request else self._hosts[::-1]):
            return
        stream = self._streams.setdefault(pipe.number, bytearray())
        stream += data
        while len(stream) >= _SIZE.size and len(stream) >= (end := _SIZE.size + _SIZE.unpack_from(stream)[0]):
            frame = bytes(stream[_SIZE.size : end])
            del stream[:end]
            if is_request:
                self._request(pipe.number + 1, frame)
            else:
                self._response(pipe.number, frame)

    def _request(self, answers: int, frame: bytes) -> None:
        header = read_request_header(frame)
        if header.api_key != self._api_key:
            return
        request = messages.decode_request(header.api_key, header.api_version, frame, header.body_position)
        exchange = CapturedRequest(header.api_key, header.api_version, request)
        self._open[answers, header.correlation_id] = exchange
        self.exchanges.append(exchange)

    def _response(self, number: int, frame: bytes) -> None:
        exchange = self._open.pop((number, _SIZE.unpack_from(frame)[0]), None)
        if exchange is None:
            return
        _, position = read_response_header(exchange.api_key, exchange.version, frame)
        exchange.response = messages.decode_response(exchange.api_key, exchange.version, frame, position)


def position(fetch: CapturedRequest) -> tuple[int, int]:
    """Of the one partition that a Fetch asks for: from which offset, and the last fetched epoch."""
    ((partition,),) = (topic.partitions for topic in fetch.request.topics)
    return partition.fetch_offset, partition.last_fetched_epoch


def diverging(fetch: CapturedRequest) -> tuple[int, int]:
    """Of the one partition that it was answered: the diverging epoch and its end offset; -1 if the logs agree."""
    ((partition,),) = (topic.partitions for topic in fetch.response.responses)
    return partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset
