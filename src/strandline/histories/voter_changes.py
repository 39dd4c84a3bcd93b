"""Adding and removing voters through any broker, and what is known of it afterwards (KIP-853).

Always true: one change at a time; one whose answer was lost may have happened, and is asked for again until it is told.
"""

from __future__ import annotations

import asyncio
from typing import Any

from strandline.client.aio import AsyncClient, ClientConfig
from strandline.client.core.backoff import Backoff
from strandline.errors import ErrorCode, KafkaError
from strandline.histories.cluster import BROKER_PORT, CLUSTER_ID, CONTROLLER_PORT, Cluster, Stuck, host
from strandline.wire import messages

ADD_RAFT_VOTER, REMOVE_RAFT_VOTER = 80, 81
TIMEOUT_MS = 2_000
ATTEMPTS_MAX = 120

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
"""Another change is under way, the leader is new, the replica has not caught up, or nobody knows."""


class VoterChanges:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._machine = cluster.world.node("operator")
        self.voters = set(cluster.shape.voter_ids)
        """As acknowledged."""

    def add(self, node_id: int) -> asyncio.Task[None]:
        """Done when it is acknowledged."""
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
        return self._machine.spawn(self._change(ADD_RAFT_VOTER, message, ErrorCode.DUPLICATE_VOTER, node_id))

    def remove(self, node_id: int) -> asyncio.Task[None]:
        message = messages.request(REMOVE_RAFT_VOTER)(
            cluster_id=CLUSTER_ID,
            voter_id=node_id,
            voter_directory_id=self._cluster.members[node_id].directory_id,
        )
        return self._machine.spawn(self._change(REMOVE_RAFT_VOTER, message, ErrorCode.VOTER_NOT_FOUND, node_id))

    async def _change(self, api_key: int, message: Any, done_before: ErrorCode, node_id: int) -> None:
        what = f"{'add' if api_key == ADD_RAFT_VOTER else 'remove'} voter n{node_id}"
        addresses = [f"{host(broker_id)}:{BROKER_PORT}" for broker_id in self._cluster.shape.broker_ids]
        config = ClientConfig(
            client_id="operator",
            request_timeout_ms=2 * TIMEOUT_MS,
            connection_setup_timeout_ms=400,
            reconnect_backoff=Backoff(20, 200),
        )
        machine = self._machine
        async with AsyncClient(addresses, clock=machine.clock, randomness=machine.randomness, config=config) as client:
            for _ in range(ATTEMPTS_MAX):
                code, said = await self._ask(client, api_key, message)
                self._cluster.transcript.note(machine.name, f"{what}: {ErrorCode(code).name} {said or ''}")
                if code in (ErrorCode.NONE, done_before):
                    (self.voters.add if api_key == ADD_RAFT_VOTER else self.voters.discard)(node_id)
                    return
                if code not in LATER:
                    raise Stuck(f"{what}: {ErrorCode(code).name} {said}")
                await asyncio.sleep(0.2)
        raise Stuck(f"{what}: not in {ATTEMPTS_MAX} attempts")

    @staticmethod
    async def _ask(client: AsyncClient, api_key: int, message: Any) -> tuple[int, str | None]:
        try:
            answer = await client.request(None, api_key, message)
        except KafkaError as error:
            return error.code, error.message
        return answer.error_code, answer.error_message

    def judge(self) -> None:
        """Everybody who votes, and everybody else, knows the voters that were acknowledged."""
        for member in self._cluster.members.values():
            seen = member.look()
            if seen is not None and set(seen.voters.ids) != self.voters:
                raise Stuck(f"n{member.id} knows the voters {seen.voters.ids}; {sorted(self.voters)} were acknowledged")
