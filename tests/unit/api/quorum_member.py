"""A member of the quorum for the tests of its APIs: keeps what it is asked, and answers what it is told to."""

from __future__ import annotations

from typing import Any

from strandline.api.requests.pending_reply import PendingReply
from strandline.wire import messages

from .conftest import CLUSTER_ID

OTHER_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"
__all__ = ["CLUSTER_ID", "OTHER_CLUSTER", "RecordingMember", "ask", "received"]


class RecordingMember:
    is_active = False
    leader = (7, 3)

    def __init__(self, answer: Any = None, facts: Any = None) -> None:
        self.requests: list[Any] = []
        self.cancelled: list[Any] = []
        self._answer = answer
        self._facts = facts

    def submit(self, request: Any, answer: Any) -> None:
        self.requests.append(request)
        self.answer = answer
        if self._answer is not None:
            answer(self._answer)

    def cancel(self, answer: Any) -> None:
        self.cancelled.append(answer)

    def describe(self) -> Any:
        return self._facts


def ask(broker: Any, api: Any, version: int, request: Any, member: RecordingMember) -> Any:
    """The reply as the other side reads it, or the Later that stands for it."""
    broker.parts.controller.quorum = member
    sent = messages.decode_request(api.KEY, version, messages.encode_request(api.KEY, version, request))
    reply = api.handle(sent, broker.context(api.KEY, version, "CONTROLLER"))
    if isinstance(reply, PendingReply):
        delivered: list[Any] = []
        if not reply.done:
            return reply
        reply.deliver_to(delivered.append)
        [reply] = delivered
    return received(api, version, reply)


def received(api: Any, version: int, reply: Any) -> Any:
    return messages.decode_response(api.KEY, version, messages.encode_response(api.KEY, version, reply))
