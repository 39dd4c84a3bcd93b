"""Somebody who reaches a port and says whatever it likes: requests by hand, on a plain socket.

Always true: an answer is what the node sent, and a connection that it ended is told as None.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import Any

from strandline.wire import messages
from strandline.wire.headers import read_response_header, request_header

TIMEOUT_S = 30.0
FETCH, METADATA, PRODUCE = 1, 3, 0
VOTE, BEGIN, END, ALTER_PARTITION, ENVELOPE, REGISTRATION, HEARTBEAT = 52, 53, 54, 56, 58, 62, 63
TOPIC = "__cluster_metadata"


class Stranger:
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._correlation_id = 0

    def send(self, api_key: int, version: int, message: Any) -> None:
        self._correlation_id += 1
        frame = request_header(api_key, version, self._correlation_id, "a stranger")
        frame += messages.encode_request(api_key, version, message)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self, api_key: int, version: int) -> Any | None:
        """The answer; None if the connection ended instead."""
        size = self._exactly(4)
        frame = None if size is None else self._exactly(*struct.unpack(">i", size))
        if frame is None:
            return None
        _, position = read_response_header(api_key, version, frame)
        return messages.decode_response(api_key, version, frame[position:])

    def ask(self, api_key: int, version: int, message: Any) -> Any | None:
        self.send(api_key, version, message)
        return self.receive(api_key, version)

    def _exactly(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                more = self._socket.recv(size - len(data))
            except ConnectionError:
                more = b""
            if not more:
                return None
            data += more
        return data

    def close(self) -> None:
        self._socket.close()


@contextlib.contextmanager
def stranger(port: int) -> Iterator[Stranger]:
    with contextlib.closing(Stranger(port)) as made:
        yield made


def topic_of(port: int, name: str) -> Any:
    """Leader, epochs and ISR of a topic's partitions, and its id, as a client is told."""
    request = messages.request(METADATA)
    asked = request(topics=[request.MetadataRequestTopic(topic_id=bytes(16), name=name)])
    with stranger(port) as client:
        reply = client.ask(METADATA, 12, asked)
    assert reply is not None
    return reply.topics[0]


def replica_fetch(
    port: int, topic: str, offset: int, *, replica: int = -1, epoch: int = -1, version: int = 11
) -> tuple[int, int]:
    """Error and high watermark of partition 0 in the answer to a Fetch; without a replica id it is a consumer's."""
    request = messages.request(FETCH)
    wanted = request.FetchPartition(
        partition=0, current_leader_epoch=-1, fetch_offset=offset, log_start_offset=0, partition_max_bytes=1 << 20
    )
    if version >= 15:
        who = {"replica_state": request.ReplicaState(replica_id=replica, replica_epoch=epoch)}
        name = {"topic_id": topic_of(port, topic).topic_id}
    else:
        who, name = {"replica_id": replica}, {"topic": topic}
    asked = request(
        **who,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        session_id=0,
        session_epoch=-1,
        topics=[request.FetchTopic(**name, partitions=[wanted])],
    )
    with stranger(port) as somebody:
        reply = somebody.ask(FETCH, version, asked)
    assert reply is not None
    [answer] = reply.responses[0].partitions
    return answer.error_code, answer.high_watermark


# What the members of the quorum say to each other


def vote(cluster_id: str, epoch: int, candidate: int, *, pre_vote: bool = False) -> Any:
    request = messages.request(VOTE)
    partition = request.PartitionData(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=candidate,
        last_offset_epoch=max(epoch - 1, 0),
        last_offset=10**9,
        pre_vote=pre_vote,
    )
    topic = request.TopicData(topic_name=TOPIC, partitions=[partition])
    return request(cluster_id=cluster_id, voter_id=-1, topics=[topic])


def begin(cluster_id: str, epoch: int, leader: int, port: int) -> Any:
    request = messages.request(BEGIN)
    partition = request.PartitionData(partition_index=0, leader_id=leader, leader_epoch=epoch)
    topic = request.TopicData(topic_name=TOPIC, partitions=[partition])
    here = request.LeaderEndpoint(name="CONTROLLER", host="127.0.0.1", port=port)
    return request(cluster_id=cluster_id, voter_id=-1, topics=[topic], leader_endpoints=[here])


def end(cluster_id: str, epoch: int, leader: int, port: int, *candidates: int) -> Any:
    request = messages.request(END)
    named = [request.ReplicaInfo(candidate_id=candidate) for candidate in candidates]
    partition = request.PartitionData(
        partition_index=0, leader_id=leader, leader_epoch=epoch, preferred_candidates=named
    )
    topic = request.TopicData(topic_name=TOPIC, partitions=[partition])
    here = request.LeaderEndpoint(name="CONTROLLER", host="127.0.0.1", port=port)
    return request(cluster_id=cluster_id, topics=[topic], leader_endpoints=[here])


def heartbeat(broker_id: int, epoch: int, **wanted: bool) -> Any:
    return messages.request(HEARTBEAT)(broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=10**9, **wanted)
