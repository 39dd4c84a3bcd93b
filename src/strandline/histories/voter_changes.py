"""Adding and removing voters through any broker, and what is known of it afterwards (KIP-853).

Always true: one change at a time; one whose answer was lost may have happened, and is asked for again until it is
answered.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeAlias

from strandline.client.aio import AsyncClient
from strandline.errors import ErrorCode, KafkaError
from strandline.histories.clients.connecting import connect
from strandline.histories.cluster import CLUSTER_ID, CONTROLLER_PORT, LivenessFailure
from strandline.histories.shape import host
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.histories.nemeses.context import NemesisContext
    from strandline.wire.stubs.add_raft_voter import AddRaftVoterResponse
    from strandline.wire.stubs.base import ApiRequest
    from strandline.wire.stubs.remove_raft_voter import RemoveRaftVoterResponse

    VoterChange: TypeAlias = ApiRequest[AddRaftVoterResponse | RemoveRaftVoterResponse]

ADD_RAFT_VOTER: Final = 80
REMOVE_RAFT_VOTER: Final = 81
TIMEOUT_MS = 2_000
ATTEMPTS_MAX = 120
ANSWERED_WITHIN_S = 90.0

LATER = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
"""Another change is under way, the leader is new, the replica has not caught up, or the outcome is unknown."""


class VoterChanges:
    def __init__(self, context: NemesisContext) -> None:
        self._context = context
        self._cluster = context.cluster
        self._machine = context.load.operator
        seen = [seen for node_id in context.nodes if (seen := self._cluster.seen(node_id)) is not None]
        newest = max(seen, key=lambda each: each.high_watermark or 0)
        self.voters = set(newest.voters.ids)
        """As acknowledged."""

    def one_outside(self) -> int | None:
        """A controller that does not vote."""
        outside = [node_id for node_id in self._cluster.shape.controllers if node_id not in self.voters]
        return self._context.chance.choice(outside) if outside else None

    def add(self, node_id: int) -> asyncio.Task[bool]:
        """Done when it is acknowledged; True then. False if it was left out."""
        Add = messages.request(ADD_RAFT_VOTER)
        listener = Add.Listener(name="CONTROLLER", host=host(node_id), port=CONTROLLER_PORT)
        message = Add(
            cluster_id=CLUSTER_ID,
            timeout_ms=TIMEOUT_MS,
            voter_id=node_id,
            voter_directory_id=self._cluster.members[node_id].directory_id,
            listeners=[listener],
            ack_when_committed=True,
        )
        return self._ask_for(ADD_RAFT_VOTER, message, ErrorCode.DUPLICATE_VOTER, node_id)

    def remove(self, node_id: int) -> asyncio.Task[bool]:
        message = messages.request(REMOVE_RAFT_VOTER)(
            cluster_id=CLUSTER_ID,
            voter_id=node_id,
            voter_directory_id=self._cluster.members[node_id].directory_id,
        )
        return self._ask_for(REMOVE_RAFT_VOTER, message, ErrorCode.VOTER_NOT_FOUND, node_id)

    def _ask_for(self, api_key: int, message: VoterChange, done_before: ErrorCode, node_id: int) -> asyncio.Task[bool]:
        what = f"{'add' if api_key == ADD_RAFT_VOTER else 'remove'} {host(node_id)}"
        injected = self._context.faults.inject("voter change", what, lambda: None)
        return self._machine.spawn(self._change(api_key, message, done_before, node_id, what, injected))

    async def done(self, change: asyncio.Task[bool]) -> bool:
        await self._cluster.until(change.done, "the change of voters is answered", ANSWERED_WITHIN_S)
        return change.result()

    async def _change(
        self, api_key: int, message: VoterChange, done_before: ErrorCode, node_id: int, what: str, injected: bool
    ) -> bool:
        if not injected:
            return False
        async with connect(self._machine, self._cluster.shape, 2 * TIMEOUT_MS) as client:
            for _ in range(ATTEMPTS_MAX):
                self._context.load.operations += 1
                code, said = await self._ask(client, api_key, message)
                self._cluster.transcript.note(self._machine.name, f"{what}: {ErrorCode(code).name} {said or ''}")
                if code in (ErrorCode.NONE, done_before):
                    (self.voters.add if api_key == ADD_RAFT_VOTER else self.voters.discard)(node_id)
                    return True
                if code not in LATER:
                    raise LivenessFailure(f"{what}: {ErrorCode(code).name} {said}")
                await asyncio.sleep(0.3)
        raise LivenessFailure(f"{what}: not in {ATTEMPTS_MAX} attempts")

    @staticmethod
    async def _ask(client: AsyncClient, api_key: int, message: VoterChange) -> tuple[int, str | None]:
        try:
            answer = await client.request(None, api_key, message)
        except KafkaError as error:
            return error.code, error.message
        return answer.error_code, answer.error_message

    async def judge(self) -> None:
        """Every node, voter or not, comes to know the voters that were acknowledged."""
        await self._context.whole()
        agreed = await self._context.until(self._context.convergence.is_agreed, 30.0)
        for member in self._cluster.members.values():
            seen = member.look()
            if agreed and seen is not None and set(seen.voters.ids) != self.voters:
                self._context.problem(
                    "voters",
                    f"n{member.id} knows the voters {seen.voters.ids}; {sorted(self.voters)} were acknowledged",
                )
