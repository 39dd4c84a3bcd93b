"""Members of a group and a coordinator made up for tests, in one room and on one clock: what happens is told line by
line.

    play = Play(ClassicGroup(), strategies=("range",))
    play.join("a")
    play.run()
    assert play.told == ["a assigned 0 1 2 3"]

Always true: members reach the coordinator only through the wire format.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Protocol

from strandline.client.config import ConsumerConfig
from strandline.client.core.backoff import RETRY
from strandline.client.core.cluster_metadata import ClusterMetadata
from strandline.client.core.group.classic_protocol import ClassicMemberCore
from strandline.client.core.group.consumer_protocol import ConsumerMemberCore
from strandline.client.core.group.member import GroupCall, MemberCore
from strandline.wire import messages

from ..broker import metadata

STEP_S = 0.1
Reply = Callable[[Any], None]


class FakeCoordinator(Protocol):
    def handle(self, api_key: int, request: Any, reply: Reply, now: float) -> None: ...


class Play:
    def __init__(self, coordinator: FakeCoordinator, partitions: int = 4, **config: Any) -> None:
        self.coordinator = coordinator
        self.cluster = ClusterMetadata()
        self.partitions(partitions)
        self.members: dict[str, MemberCore] = {}
        self.told: list[str] = []
        self.sent: list[tuple[str, int, Any]] = []
        """By whom, which API, and the request."""
        self.timeouts_ms: dict[int, list[int]] = {}
        """By API: how long each request was to be waited for."""
        self.busy: set[str] = set()
        """Members whose application does not poll."""
        self.now = 0.0
        self._config = config
        self._in_flight: dict[str, GroupCall] = {}

    def partitions(self, count: int, topic: str = "t", topic_id: bytes | None = None) -> None:
        more: dict[str, Any] = {} if topic_id is None else {"topic_id": topic_id}
        self.cluster.update(metadata(dict.fromkeys(range(count), (1, 0)), topic, **more))

    def join(
        self, name: str, topics: tuple[str, ...] = ("t",), pattern: str | None = None, **config: Any
    ) -> MemberCore:
        settings = ConsumerConfig(group_id="g", **{**self._config, **config})
        make = ConsumerMemberCore if settings.group_protocol == "consumer" else ClassicMemberCore
        member = self.members[name] = make(settings, self.cluster, RETRY, random.Random(name))
        member.subscribe(topics, pattern, self.now)
        return member

    def leave(self, name: str) -> None:
        call = self.members.pop(name).leave()
        self._in_flight.pop(name, None)
        if call is not None:
            self._send(name, call)

    def run(self, seconds: float = 2.0) -> list[str]:
        """Let that much time pass; what was told meanwhile."""
        before = len(self.told)
        end = self.now + seconds
        while self.now < end:
            self.now += STEP_S
            for name in list(self.members):
                self._turn(name)
        return self.told[before:]

    def _turn(self, name: str) -> None:
        member = self.members[name]
        if name not in self.busy:
            member.poll_began()
            while (change := member.change()) is not None:
                self.told.append(" ".join([name, change.kind.name.lower(), *(str(p) for _, p in change.partitions)]))
                member.applied(change, self.now)
            member.poll_ended(self.now)
        if name not in self._in_flight:
            call = member.plan(self.now)
            if call is not None:
                self._in_flight[name] = call
                self._send(name, call)

    def _send(self, name: str, call: GroupCall) -> None:
        version = messages.request_family(call.api_key).versions[-1]
        bytes_sent = messages.encode_request(call.api_key, version, call.message)
        request = messages.decode_request(call.api_key, version, bytes_sent)
        self.sent.append((name, call.api_key, request))
        self.timeouts_ms.setdefault(call.api_key, []).append(call.timeout_ms)

        def reply(response: Any) -> None:
            read = messages.decode_response(
                call.api_key, version, messages.encode_response(call.api_key, version, response)
            )
            if self._in_flight.get(name) is call:
                del self._in_flight[name]
                self.members[name].answered(call, read, self.now)

        self.coordinator.handle(call.api_key, request, reply, self.now)

    def cut(self, name: str) -> None:
        """Its connection breaks."""
        call = self._in_flight.pop(name, None)
        if call is not None:
            self.members[name].lost(call, self.now)
        self.members[name].coordinator_found(self.now)

    def owned(self) -> dict[str, list[int]]:
        return {name: sorted(p for _, p in member.owned) for name, member in self.members.items()}
