"""Whatever members, commits and coordinators do: what must hold of a classic group."""

from __future__ import annotations

import random
from typing import Any

import pytest

from strandline.errors import ErrorCode
from strandline.groups.classic.group import COMPLETING_REBALANCE, EMPTY, STABLE, ClassicGroup
from strandline.wire import messages
from tests.unit.groups.classic.transcript import subscription
from tests.unit.groups.driver import Call, Driver

STEPS = 300
CLIENTS = 5


class Client:
    """Asks as a consumer does, and sometimes as none should."""

    def __init__(self, number: int) -> None:
        self.instance_id = f"i{number // 2}" if number < 2 else None
        self.member_id = ""
        self.generation_id = -1
        self.leads: list[str] = []
        self.next = "join"
        self.waits = False

    def forget(self) -> None:
        self.member_id, self.generation_id, self.leads, self.next = "", -1, [], "join"


class History:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.driver = Driver(seed=seed, group_max_size="4")
        self.clients = [Client(number) for number in range(CLIENTS)]
        self.calls: list[tuple[Call, Client, Any]] = []
        self.assigned: dict[int, dict[str, bytes]] = {}
        """Who was told what, by generation."""

    def step(self) -> None:
        ordinary = [self.go_on, self.pass_time]
        rare = [self.join, self.sync, self.beat, self.leave, self.restart, self.log_works, self.reload]
        work = self.chance.choices([*ordinary, *rare], [60, 15, 1, 1, 1, 1, 1, 4, 1])[0]
        work(self.chance.choice(self.clients))
        self.hear()
        self.check()

    def go_on(self, client: Client) -> None:
        if not client.waits:
            getattr(self, client.next)(client)

    def call(self, client: Client, operation: str, request: Any) -> None:
        client.waits = True
        self.calls.append(
            (self.driver.call(operation, request, 9 if operation == "join_group" else 4), client, request)
        )

    def join(self, client: Client) -> None:
        Request = messages.request(11)
        topics = self.chance.choice(["t", "t", "u"])
        protocols = self.chance.choice([["range"], ["range", "sticky"], ["sticky", "range"]])
        request = Request(
            group_id="g",
            session_timeout_ms=self.chance.choice([6_000, 30_000]),
            rebalance_timeout_ms=self.chance.choice([5_000, 20_000]),
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            protocol_type="consumer",
            protocols=[
                Request.JoinGroupRequestProtocol(name=name, metadata=subscription(topics)) for name in protocols
            ],
        )
        self.call(client, "join_group", request)

    def sync(self, client: Client) -> None:
        Request = messages.request(14)
        request = Request(
            group_id="g",
            generation_id=client.generation_id,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            assignments=[
                Request.SyncGroupRequestAssignment(member_id=name, assignment=b"%d" % self.chance.randrange(1 << 30))
                for name in client.leads
            ],
        )
        self.call(client, "sync_group", request)

    def beat(self, client: Client) -> None:
        request = messages.request(12)(
            group_id="g",
            generation_id=client.generation_id,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
        )
        self.call(client, "heartbeat", request)

    def leave(self, client: Client) -> None:
        Request = messages.request(13)
        identity = Request.MemberIdentity(member_id=client.member_id, group_instance_id=client.instance_id)
        self.call(client, "leave_group", Request(group_id="g", members=[identity]))

    def pass_time(self, client: Client) -> None:
        self.driver.advance(self.chance.choice([0.5, 0.5, 0.5, 3.0, 3.0, 10.0]))

    def restart(self, client: Client) -> None:
        client.forget()

    def log_works(self, client: Client) -> None:
        chance = self.chance.random()
        if chance < 0.4:
            self.driver.hold()
        elif chance < 0.8:
            self.driver.refuses = None
            self.driver.commit()
        elif chance < 0.9:
            self.driver.commit(self.chance.choice([ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS]))
        else:
            self.driver.refuses = ErrorCode.NOT_ENOUGH_REPLICAS

    def reload(self, client: Client) -> None:
        self.driver.reload(loses_uncommitted=self.chance.random() < 0.5)

    # What is heard, and must hold

    def hear(self) -> None:
        for call, client, request in [entry for entry in self.calls if entry[0].is_answered]:
            client.waits = False
            if isinstance(request, messages.request(11)):
                self.hear_join(client, request, call)
            elif isinstance(request, messages.request(14)) and call.code is ErrorCode.NONE:
                client.next = "beat"
                told = self.assigned.setdefault(request.generation_id, {})
                key = request.group_instance_id or request.member_id
                assert told.setdefault(key, call.response.assignment) == call.response.assignment
            elif call.code is ErrorCode.UNKNOWN_MEMBER_ID:
                client.forget()
            elif call.code is not ErrorCode.NONE:
                client.next = "join"
        self.calls = [entry for entry in self.calls if not entry[0].is_answered]

    def hear_join(self, client: Client, request: Any, call: Call) -> None:
        response = call.response
        if request.member_id not in ("", client.member_id):
            return
        if call.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.forget()
        elif call.code is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = response.member_id
        elif call.code is ErrorCode.NONE:
            client.member_id, client.generation_id, client.next = response.member_id, response.generation_id, "sync"
            client.leads = [member.member_id for member in response.members if not response.skip_assignment]

    def check(self) -> None:
        group = self.driver.shard.groups.get("g")
        if group is None:
            return
        assert isinstance(group, ClassicGroup)
        members = group.members.values()
        assert group.awaiting_join_count == sum(member.join_answer is not None for member in members)
        assert group.static_members == {m.group_instance_id: m.member_id for m in members if m.group_instance_id}
        assert not group.pending_join & group.members.keys()
        assert group.pending_sync <= group.members.keys()
        assert (group.leader_id in group.members) if group.members else group.leader_id is None
        timers = self.driver.shard.timers
        for member_id in (*group.members, *group.pending_join):
            assert ("heartbeat", "g", member_id) in timers
        if group.state is EMPTY:
            assert not group.members
        if group.state in (STABLE, COMPLETING_REBALANCE):
            assert all(group.protocol_name in member.supported_protocols for member in members)
            if group.pending_sync:
                assert ("sync", "g") in timers
        if group.state.value == "PreparingRebalance":
            assert ("join", "g") in timers
            assert ("sync", "g") not in timers


@pytest.mark.parametrize("seed", range(40))
def test_a_history(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        history.step()
    # In the end everything works, and everybody is silent: whoever waits is answered, and nothing remains.
    history.driver.refuses = None
    history.driver.commit()
    history.driver.advance(3600)
    history.hear()
    assert not history.calls
    group = history.driver.shard.groups.get("g")
    assert group is None or group.is_empty()
    assert len(history.driver.shard.timers) == 0
