"""The coordinator of a classic group made up for tests: one barrier for JoinGroup, one for SyncGroup, generations."""

from __future__ import annotations

from typing import Any

from strandline.errors import ErrorCode
from strandline.wire import messages

from .play import Reply

JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS = 11, 12, 13, 14, 15


class ClassicGroup:
    def __init__(self) -> None:
        self.generation = 0
        self.members: dict[str, Any] = {}
        """The last JoinGroup of each."""
        self.instances: dict[str, str] = {}
        self.assignments: dict[str, bytes] = {}
        self.refuse_next: dict[int, ErrorCode] = {}
        """The answer to the next request of an API."""
        self._joining: dict[str, Reply] = {}
        self._syncing: dict[str, Reply] = {}
        self._is_rebalancing = False
        self._count = 0

    @property
    def leader(self) -> str:
        return next(iter(self.members))

    def handle(self, api_key: int, request: Any, reply: Reply, now: float) -> None:
        refused = self.refuse_next.pop(api_key, None)
        if api_key == DESCRIBE_GROUPS:
            self._describe(refused or ErrorCode.NONE, reply)
        elif refused is not None:
            if refused is ErrorCode.UNKNOWN_MEMBER_ID:
                self.members.pop(request.member_id)
            reply(messages.response(api_key)(error_code=refused))
        else:
            handlers = {11: self._join, 12: self._heartbeat, 13: self._leave, 14: self._sync}
            handlers[api_key](request, reply)

    def _begin_rebalance(self) -> None:
        self._is_rebalancing = True
        for reply in self._syncing.values():
            reply(messages.response(SYNC_GROUP)(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        self._syncing.clear()
        self._complete_join()

    def _join(self, request: Any, reply: Reply) -> None:
        Response = messages.response(JOIN_GROUP)
        if not request.member_id and request.group_instance_id is None:
            self._count += 1
            reply(Response(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=f"member-{self._count}"))
            return
        member_id = request.member_id
        if not member_id:
            self._count += 1
            member_id = f"member-{self._count}"
            before = self.instances.get(request.group_instance_id)
            self.instances[request.group_instance_id] = member_id
            if before in self.members:
                # A static member that came back: same place, new member id, no rebalance.
                self.members = {member_id if m == before else m: r for m, r in self.members.items()}
                self.assignments[member_id] = self.assignments.pop(before, b"")
                self.members[member_id] = request
                self._answer_join(member_id, reply, skip_assignment=True)
                return
        elif member_id not in self.members and int(member_id.partition("-")[2]) > self._count:
            reply(Response(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
            return
        self.members[member_id] = request
        self._joining[member_id] = reply
        self._begin_rebalance()

    def _complete_join(self) -> None:
        if self.members and self._is_rebalancing and self._joining.keys() >= self.members.keys():
            self.generation += 1
            self._is_rebalancing = False
            self.assignments = {}
            joining, self._joining = self._joining, {}
            for member_id, reply in joining.items():
                self._answer_join(member_id, reply, skip_assignment=False)

    def _answer_join(self, member_id: str, reply: Reply, *, skip_assignment: bool) -> None:
        Response = messages.response(JOIN_GROUP)
        requests = list(self.members.values())
        protocol = next(
            p.name for p in requests[0].protocols if all(p.name in [q.name for q in r.protocols] for r in requests)
        )
        metadata = {
            m: next(p.metadata for p in request.protocols if p.name == protocol) for m, request in self.members.items()
        }
        members = [
            Response.JoinGroupResponseMember(
                member_id=m, group_instance_id=self.members[m].group_instance_id, metadata=metadata[m]
            )
            for m in self.members
        ]
        reply(
            Response(
                generation_id=self.generation,
                protocol_type="consumer",
                protocol_name=protocol,
                leader=self.leader,
                member_id=member_id,
                skip_assignment=skip_assignment,
                members=members if member_id == self.leader else [],
            )
        )

    def _check(self, request: Any) -> ErrorCode:
        if request.member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if request.generation_id != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.REBALANCE_IN_PROGRESS if self._is_rebalancing else ErrorCode.NONE

    def _sync(self, request: Any, reply: Reply) -> None:
        Response = messages.response(SYNC_GROUP)
        code = self._check(request)
        if code is not ErrorCode.NONE:
            reply(Response(error_code=code))
            return
        self._syncing[request.member_id] = reply
        if request.member_id == self.leader and request.assignments:
            self.assignments = {a.member_id: a.assignment for a in request.assignments}
        if self.assignments:
            syncing, self._syncing = self._syncing, {}
            for member_id, waiting in syncing.items():
                waiting(Response(assignment=self.assignments.get(member_id, b"")))

    def _describe(self, code: ErrorCode, reply: Reply) -> None:
        Response = messages.response(DESCRIBE_GROUPS)
        group = Response.DescribedGroup(
            error_code=code,
            members=[
                Response.DescribedGroupMember(member_id=member_id, member_assignment=self.assignments[member_id])
                for member_id in self.members
                if code is ErrorCode.NONE
            ],
        )
        reply(Response(groups=[group]))

    def _heartbeat(self, request: Any, reply: Reply) -> None:
        reply(messages.response(HEARTBEAT)(error_code=self._check(request)))

    def _leave(self, request: Any, reply: Reply) -> None:
        (leaving,) = request.members
        self.members.pop(leaving.member_id, None)
        self._joining.pop(leaving.member_id, None)
        self._begin_rebalance()
        reply(messages.response(LEAVE_GROUP)())
