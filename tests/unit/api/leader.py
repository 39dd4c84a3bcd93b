"""A leader whose time stands still until a test moves it, and followers that ask it by way of the wire."""

from __future__ import annotations

from typing import Any

from strandline.api import fetch
from strandline.api.fetching.follower_sessions import FollowerSession
from strandline.api.requests.pending_reply import PendingReply
from strandline.ids import Uuid
from strandline.records.header import iterate
from strandline.replica.followers import FollowerProgress
from strandline.replica.partition import Partition
from strandline.wire import messages
from tests.unit.replica.hand_driven import HandLoop, MemoryDisk, at_once

from .conftest import LISTENER, TestBroker, registration

FETCH, VERSION = 1, 17
Request = messages.request(FETCH)


def part(
    offset: int, index: int = 0, *, epoch: int = 0, last: int = -1, start: int = 0, max_bytes: int = 1 << 20
) -> Any:
    """A position: the offset asked for, the leader epoch that its follower knows, and the epoch of its last batch."""
    return Request.FetchPartition(
        partition=index,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last,
        log_start_offset=start,
        partition_max_bytes=max_bytes,
    )


def offsets(answer: Any) -> list[int]:
    return [header.base_offset for _, header in iterate(answer.records or b"")]


class Asked:
    """A Fetch of a follower, answered or not."""

    def __init__(self, returned: Any, version: int) -> None:
        self._version = version
        self._replies: list[Any] = []
        self.later: PendingReply[Any] | None = None
        if isinstance(returned, PendingReply):
            self.later = returned
            returned.deliver_to(self._replies.append)
        else:
            self._replies.append(returned)

    @property
    def is_waiting(self) -> bool:
        return not self._replies

    @property
    def reply(self) -> Any:
        [reply] = self._replies
        assert isinstance(reply, list), reply
        return messages.decode_response(FETCH, self._version, b"".join(reply))

    @property
    def answers(self) -> dict[int, Any]:
        """By partition of the only topic."""
        return {p.partition_index: p for topic in self.reply.responses for p in topic.partitions}

    @property
    def answer(self) -> Any:
        [answer] = self.answers.values()
        return answer

    @property
    def session_id(self) -> int:
        return int(self.reply.session_id)


class Leader:
    """Node 1 leads every partition of topic `t`."""

    def __init__(self, *replicas: tuple[int, ...], **configs: str) -> None:
        self.listener = LISTENER
        """On which the followers' Fetches arrive."""
        self.loop = HandLoop()
        self.disk = MemoryDisk(self.loop, "leader")
        self.broker = TestBroker(self.disk, "/data")
        self.broker.loop = self.loop
        self.broker.surroundings.now = self.loop.time  # type: ignore[method-assign]
        self.beside: list[Any] = []
        self.broker.parts.spawn = self.beside.append
        self.broker.commit([registration(node_id) for node_id in (2, 3, 4)])
        texts = {key.replace("_", "."): value for key, value in configs.items()}
        self.topic_id: Uuid = self.broker.create("t", *replicas or ((1, 2, 3),), configs=texts)

    def partition(self, index: int = 0) -> Partition:
        return self.broker.parts.hosted.by_name["t", index]

    def follower(self, replica: int = 2, index: int = 0) -> FollowerProgress:
        leadership = self.partition(index).leadership
        assert leadership is not None
        return leadership.followers[replica]

    def append(self, *counts: int, index: int = 0) -> None:
        """A batch for each count of records."""
        for count in counts:
            self.broker.append("t", *[1000] * count, index=index)

    def fetch(
        self,
        *parts: Any,
        replica: int = 2,
        session: tuple[int, int] = (0, 0),
        forget: tuple[int, ...] = (),
        version: int = VERSION,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = 1 << 24,
        broker_epoch: int | None = None,
    ) -> Asked:
        """Session: its id and epoch; (0, 0) begins one, (0, -1) goes without."""
        name = {"topic_id": self.topic_id} if version >= 13 else {"topic": "t"}
        epoch = replica if broker_epoch is None else broker_epoch
        who = {"replica_state": Request.ReplicaState(replica_id=replica, replica_epoch=epoch)}
        message = Request(
            **(who if version >= 15 else {"replica_id": replica}),
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            session_id=session[0],
            session_epoch=session[1],
        )
        if parts:
            message.topics = [Request.FetchTopic(**name, partitions=list(parts))]
        if forget:
            message.forgotten_topics_data = [Request.ForgottenTopic(**name, partitions=list(forget))]
        frame = bytearray(messages.encode_request(FETCH, version, message))
        return Asked(fetch.handle(memoryview(frame), self.broker.context(FETCH, version, self.listener), 0), version)

    def session(self, asked: Asked) -> FollowerSession:
        return self.broker.parts.followers.sessions._sessions[asked.session_id]

    def run_beside(self) -> None:
        """What is done beside the event loop, is done now."""
        while self.beside:
            at_once(self.beside.pop(0))
