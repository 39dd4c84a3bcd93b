"""C12: a commit of an earlier generation is not taken once another member was assigned the partition.

That holds also if the partition came back to the one that had it before. A member that had a partition of a
deleted topic may not know yet that the topic was created again, and commits by the same name.
"""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.histories.exchanges import OFFSET_COMMIT, CoordinatorExchange
from strandline.histories.groups.observation import GroupJudge, GroupObservation, ReportedAssignment
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key


class StaleCommit(GroupJudge):
    def __init__(self) -> None:
        self._owners: dict[Key, dict[str, ReportedAssignment]] = {}
        """Of each partition, by member: the last answer that assigned it."""

        self._names: dict[str, dict[str, Key]] = {}
        """By member and name of a partition: the newest of that name that the member had."""

    def assigned(self, observed: GroupObservation, assignment: ReportedAssignment) -> None:
        for key in assignment.keys:
            self._owners.setdefault(key, {})[assignment.who] = assignment
            self._names.setdefault(assignment.who, {})[observed.name(key)] = key

    def deleted(self, observed: GroupObservation) -> None:
        self._owners.clear()
        self._names.clear()

    def answered(self, observed: GroupObservation, exchange: CoordinatorExchange) -> None:
        request = exchange.request
        if exchange.api_key != OFFSET_COMMIT or not request.member_id:
            return
        who = request.group_instance_id or observed.identity(request.member_id)
        generation = request.generation_id_or_member_epoch
        for key, partition in observed.keys_of(exchange.response.topics):
            if partition.error_code != ErrorCode.NONE:
                continue
            owners = self._owners.get(key, {})
            if self._names.get(who, {}).get(observed.name(key), key) != key:
                continue  # of the topic that was deleted
            for owner in owners.values():
                if owner.who != who and owner.at < exchange.asked_at and generation < owner.generation:
                    raise Violation(
                        f"takes a commit of {observed.name(key)} from {who} in generation {generation}, "
                        f"which {owner.who} had in generation {owner.generation}"
                    )
