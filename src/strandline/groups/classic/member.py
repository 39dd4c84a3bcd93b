"""A member of a classic group: what it asked for, what it was assigned, and which of its requests wait.

Always true: it waits with at most one JoinGroup and one SyncGroup; a later one of the same kind replaces the former,
which is answered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from strandline.coordinator.result import Answer, Moment
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.join_group import JoinGroupRequest, JoinGroupResponse
    from strandline.wire.stubs.sync_group import SyncGroupResponse

NO_ASSIGNMENT = b""
VERSION_SIZE = 2
"""A subscription of the consumer protocol begins with its version."""


@dataclass(slots=True, eq=False)
class ClassicMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    supported_protocols: dict[str, bytes]
    """Metadata by protocol, the one it likes best first."""
    assignment: bytes = NO_ASSIGNMENT
    is_new: bool = False
    """It has not received its member id yet, so that it can't send heartbeats."""
    join_answer: Answer[JoinGroupResponse] | None = None
    sync_answer: Answer[SyncGroupResponse] | None = None
    session_end_s: float = 0.0
    """Until when it has to be heard from.
    Its timer looks at this when it is due, so that a heartbeat need not touch the timer.
    """
    session_timer_s: float = inf
    """When the timer is due."""

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def has_request(self) -> bool:
        """One that waits for the group."""
        return self.join_answer is not None or self.sync_answer is not None

    def heard(self, at: Moment) -> None:
        self.session_end_s = at.now + self.session_timeout_ms / 1000

    def metadata(self, protocol_name: str) -> bytes:
        return self.supported_protocols[protocol_name]

    def vote(self, candidates: set[str]) -> str:
        """The first of its protocols that all members support."""
        return next(name for name in self.supported_protocols if name in candidates)

    def matches(self, protocols: dict[str, bytes]) -> bool:
        """These are the protocols it has, in the same order."""
        return list(protocols.items()) == list(self.supported_protocols.items())


def protocols_of(listed: Iterable[JoinGroupRequest.JoinGroupRequestProtocol]) -> dict[str, bytes]:
    """The protocols of a JoinGroup; of two with the same name the first counts."""
    protocols: dict[str, bytes] = {}
    for protocol in listed:
        protocols.setdefault(protocol.name, bytes(protocol.metadata))
    return protocols


def rebalance_timeout_of(request: JoinGroupRequest) -> int:
    """In milliseconds, of a JoinGroup; version 0 has none of its own."""
    return request.session_timeout_ms if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms


def subscribed_topics(metadata: bytes) -> list[str]:
    """The topics of a consumer's subscription: every version begins as version 0 does.
    MalformedRequest if this one doesn't.
    """
    return messages.decode_data("ConsumerProtocolSubscription", 0, metadata, VERSION_SIZE).topics
