"""C12: of two processes with the same instance id the former is fenced: what it commits under its own member id is
not taken."""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.histories.exchanges import JOIN_GROUP, OFFSET_COMMIT, CoordinatorExchange
from strandline.histories.groups.observation import GroupJudge, GroupObservation
from strandline.histories.quorum_observation import Violation


class FencedInstance(GroupJudge):
    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, float]] = {}
        """By instance id: as which member it joined last, and when that was answered."""

    def deleted(self, observed: GroupObservation) -> None:
        self._newest.clear()

    def answered(self, observed: GroupObservation, exchange: CoordinatorExchange) -> None:
        request, response = exchange.request, exchange.response
        if exchange.api_key == JOIN_GROUP and request.group_instance_id and not response.error_code:
            self._newest[request.group_instance_id] = (response.member_id, exchange.answered_at or 0.0)
        if exchange.api_key != OFFSET_COMMIT or not request.group_instance_id:
            return
        member_id, since = self._newest.get(request.group_instance_id, ("", 0.0))
        if not member_id or member_id == request.member_id or since >= exchange.asked_at:
            return
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.NONE:
                    raise Violation(
                        f"takes a commit of {request.member_id}, and {request.group_instance_id} is {member_id} since"
                    )
