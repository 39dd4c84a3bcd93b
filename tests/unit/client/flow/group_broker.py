"""Two brokers made up for tests that know groups: one leads the partition, either may be the coordinator."""

from __future__ import annotations

import asyncio
import struct
from typing import Any, cast

from strandline.errors import ErrorCode
from strandline.wire import messages
from strandline.wire.headers import read_request_header, response_header

from ..core.broker import TOPIC_ID, metadata
from ..core.group.classic_group import ClassicGroup
from ..core.group.consumer_group import ConsumerGroup
from ..server import SERVED, Broker

GROUP_APIS = {8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9), 12: (0, 4), 13: (0, 5), 14: (0, 5), 68: (0, 1)}
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10


class GroupCluster(Broker):
    """Nodes 1 and 2, on hosts of these names. `asked` is what came to whom: (node, API, request)."""

    def __init__(self, records: int = 10) -> None:
        super().__init__()
        self.log.values = [b"%d" % number for number in range(records)]
        self.coordinator = 2
        self.hosts = {1: ("broker1", 9092), 2: ("broker2", 9092)}
        self.classic = ClassicGroup()
        self.consumer = ConsumerGroup(1)
        self.committed: dict[int, int] = {}
        self.asked: list[tuple[int, int, Any]] = []
        self.refuse_commits: list[ErrorCode] = []
        self.lose_commits = 0
        """Of how many of the next the reply is lost, after they were done."""
        self.hears_commits = True
        self.found_nothing = False

    def apis(self) -> list[int]:
        return [key for _, key, _ in self.asked]

    def offsets_committed(self) -> list[int]:
        return [request.topics[0].partitions[0].committed_offset for _, key, request in self.asked if key == 8]

    def versions(self, _: Any) -> Any:
        R = messages.response(18)
        served = SERVED | GROUP_APIS
        return R(api_keys=[R.ApiVersion(api_key=k, min_version=a, max_version=b) for k, (a, b) in served.items()])

    def metadata(self, _: Any) -> Any:
        answer = metadata({0: (1, 0)}, nodes=(1, 2))
        for broker in answer.brokers:
            broker.host, broker.port = self.hosts[broker.node_id]
        return answer

    def fetch(self, request: Any) -> Any:
        response = super().fetch(request)
        self.found_nothing = not any(p.records for topic in response.responses for p in topic.partitions)
        return response

    def serve(self, node: int, frame: bytes, served: Served) -> None:
        header = read_request_header(frame)
        key, version = header.api_key, header.api_version
        if key not in GROUP_APIS:
            reply = self.reply(frame)
            assert reply is not None
            # Nobody writes meanwhile, so a Fetch that found nothing waits as long as it may.
            asyncio.get_running_loop().call_later(0.5 if self.found_nothing else 0.0, served.write, reply)
            self.found_nothing = False
            return
        request = messages.decode_request(key, version, frame, header.body_position)
        self.asked.append((node, key, request))

        def answer(response: Any) -> None:
            body = response_header(key, version, header.correlation_id)
            body += messages.encode_response(key, version, response)
            served.write(struct.pack(">i", len(body)) + body)

        if key == FIND_COORDINATOR:
            answer(self._find(request))
        elif node != self.coordinator:
            answer(self._not_coordinator(key, request))
        elif key == OFFSET_COMMIT:
            if not self.hears_commits:
                return
            response = self._commit(request)
            if self.lose_commits:
                self.lose_commits -= 1
                served.abort()
            else:
                answer(response)
        elif key == OFFSET_FETCH:
            answer(self._fetch_offsets(request))
        elif key == 68:
            self.consumer.handle(key, request, answer, 0.0)
        else:
            self.classic.handle(key, request, answer, 0.0)

    def _find(self, request: Any) -> Any:
        R = messages.response(FIND_COORDINATOR)
        host, port = self.hosts[self.coordinator]
        return R(
            coordinators=[
                R.Coordinator(key=key, node_id=self.coordinator, host=host, port=port)
                for key in request.coordinator_keys
            ]
        )

    def _not_coordinator(self, key: int, request: Any) -> Any:
        code = ErrorCode.NOT_COORDINATOR
        R = messages.response(key)
        if key == OFFSET_COMMIT:
            return self._commit_answer(request, code)
        if key == OFFSET_FETCH:
            return R(groups=[R.OffsetFetchResponseGroup(group_id=g.group_id, error_code=code) for g in request.groups])
        return R(error_code=code)

    def _commit(self, request: Any) -> Any:
        if self.refuse_commits:
            return self._commit_answer(request, self.refuse_commits.pop(0))
        for topic in request.topics:
            assert topic.topic_id == TOPIC_ID
            self.committed |= {p.partition_index: p.committed_offset for p in topic.partitions}
        return self._commit_answer(request, ErrorCode.NONE)

    def _commit_answer(self, request: Any, code: ErrorCode) -> Any:
        R = messages.response(OFFSET_COMMIT)
        return R(
            topics=[
                R.OffsetCommitResponseTopic(
                    topic_id=topic.topic_id,
                    partitions=[
                        R.OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code)
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _fetch_offsets(self, request: Any) -> Any:
        R = messages.response(OFFSET_FETCH)
        groups = []
        for group in request.groups:
            topics = [
                R.OffsetFetchResponseTopics(
                    topic_id=topic.topic_id,
                    partitions=[
                        R.OffsetFetchResponsePartitions(
                            partition_index=p, committed_offset=self.committed.get(p, -1), committed_leader_epoch=-1
                        )
                        for p in topic.partition_indexes
                    ],
                )
                for topic in group.topics
            ]
            groups.append(R.OffsetFetchResponseGroup(group_id=group.group_id, topics=topics))
        return R(groups=groups)


class Served(asyncio.Protocol):
    def __init__(self, cluster: GroupCluster, node: int) -> None:
        self._cluster = cluster
        self._node = node
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._cluster.open_connections[self] = self._transport

    def connection_lost(self, error: Exception | None) -> None:
        del self._cluster.open_connections[self]

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= 4 and len(self._data) >= (end := 4 + int.from_bytes(self._data[:4], "big")):
            frame, self._data = self._data[4:end], self._data[end:]
            self._cluster.serve(self._node, frame, self)

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def abort(self) -> None:
        self._transport.abort()


async def serve_node(cluster: GroupCluster, node: int) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    host, port = cluster.hosts[node]
    server = await loop.create_server(lambda: Served(cluster, node), host, port)
    if not port:
        cluster.hosts[node] = (host, server.sockets[0].getsockname()[1])
    return server
