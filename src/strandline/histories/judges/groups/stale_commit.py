"""C12: once another member was told that it has a partition, a commit that its former owner sends then is not taken."""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.histories.exchanges import OFFSET_COMMIT, GroupExchange
from strandline.histories.groups.sight import GroupJudge, GroupSight, Told
from strandline.histories.replica_sight import Key
from strandline.histories.sight import Violation


class StaleCommit(GroupJudge):
    def __init__(self) -> None:
        self._owners: dict[Key, Told] = {}
        """The newest of each partition."""

    def told(self, sight: GroupSight, told: Told) -> None:
        for key in told.keys:
            self._owners[key] = told

    def deleted(self, sight: GroupSight) -> None:
        self._owners.clear()

    def answered(self, sight: GroupSight, exchange: GroupExchange) -> None:
        request = exchange.request
        if exchange.api_key != OFFSET_COMMIT or not request.member_id:
            return
        who = request.group_instance_id or sight.identity(request.member_id)
        for key, told in sight.keys_of(exchange.response.topics):
            owner = self._owners.get(key)
            if told.error_code != ErrorCode.NONE or owner is None or owner.who == who or owner.at >= exchange.asked_at:
                continue
            if request.generation_id_or_member_epoch < owner.generation:
                raise Violation(
                    f"takes a commit of {sight.name(key)} from {who} in generation {request.generation_id_or_member_epoch}, "
                    f"which {owner.who} had since generation {owner.generation}"
                )
