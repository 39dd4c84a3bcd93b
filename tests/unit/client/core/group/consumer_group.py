"""The coordinator of a KIP-848 group made up for tests:
it assigns evenly, and gives a partition only once nobody has it.
"""

from __future__ import annotations

from typing import Any

from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.wire import messages

from ..broker import TOPIC_ID
from .play import Reply

HEARTBEAT = 68


class ConsumerGroup:
    def __init__(self, partitions: int = 4, topic_id: Uuid = TOPIC_ID) -> None:
        self.epoch = 1
        self.members: dict[str, dict[str, Any]] = {}
        self.partitions = partitions
        self.topic_id = topic_id
        self.refuse_next: ErrorCode | None = None

    def handle(self, api_key: int, request: Any, reply: Reply, now: float) -> None:
        assert api_key == HEARTBEAT
        Response = messages.response(HEARTBEAT)
        refused, self.refuse_next = self.refuse_next, None
        if refused is not None:
            if refused in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
                self.members.pop(request.member_id)
                self.epoch += 1
            reply(Response(error_code=refused))
            return
        if request.member_epoch < 0:
            self.members.pop(request.member_id)
            self.epoch += 1
            reply(Response(member_id=request.member_id, member_epoch=request.member_epoch))
            return
        if request.member_epoch == 0:
            assert request.topic_partitions == []
            assert request.rebalance_timeout_ms > 0
            self.members[request.member_id] = {"owned": set(), "given": None, "epoch": 0}
            self.epoch += 1
        member = self.members.get(request.member_id)
        if member is None or request.member_epoch not in (0, member["epoch"]):
            reply(Response(error_code=ErrorCode.FENCED_MEMBER_EPOCH if member else ErrorCode.UNKNOWN_MEMBER_ID))
            return
        if request.topic_partitions is not None:
            member["owned"] = {p for t in request.topic_partitions for p in t.partitions}
        given = self._may_have(request.member_id)
        if member["owned"] <= given:
            member["epoch"] = self.epoch
        is_news = given != member["given"] or request.member_epoch == 0
        member["given"] = given
        topics = [Response.TopicPartitions(topic_id=self.topic_id, partitions=sorted(given))] if given else []
        reply(
            Response(
                member_id=request.member_id,
                member_epoch=member["epoch"],
                heartbeat_interval_ms=1000,
                assignment=Response.Assignment(topic_partitions=topics) if is_news else None,
            )
        )

    def _may_have(self, member_id: str) -> set[int]:
        names = list(self.members)
        target = {p for p in range(self.partitions) if p % len(names) == names.index(member_id)}
        others = [m for name, m in self.members.items() if name != member_id]
        taken = {p for m in others for p in m["owned"] | (m["given"] or set())}
        return target - taken
