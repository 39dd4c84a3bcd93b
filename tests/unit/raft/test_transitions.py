"""Each transition by itself: the rows of transitions.txt, which together are the table in states.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.raft import effects as do
from strandline.raft import events as on
from strandline.raft.core import Core
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    RaftFetchRequest,
    RaftFetchResponse,
    Response,
    VoteRequest,
    VoteResponse,
)
from strandline.raft.states import TRANSITIONS, Resigned, State
from tests.unit.raft.bench import NONE, Bench
from tests.unit.raft.cluster import address, key

ROWS = [
    tuple(part.strip() for part in line.partition("#")[0].split("|"))
    for line in (Path(__file__).parent / "transitions.txt").read_text().splitlines()
    if line.partition("#")[0].strip()
]


def _prospective() -> Bench:
    bench = Bench(state=ElectionState(1))
    bench.wait_for("Prospective")
    return bench


def _candidate() -> Bench:
    bench = _prospective()
    bench.reply(bench.votes(pre_vote=True)[3], bench.vote(True))
    return bench


def _leader() -> Bench:
    bench = _candidate()
    bench.reply(bench.votes(pre_vote=False)[3], bench.vote(True))
    bench.flush()
    return bench


def _follower() -> Bench:
    bench = Bench()
    bench.follow(2, epoch=3)
    return bench


STARTS: dict[str, Callable[[], Bench]] = {
    "Unattached(1)": lambda: Bench(state=ElectionState(1)),
    "Prospective(1)": _prospective,
    "Candidate(2)": _candidate,
    "Follower(3)": _follower,
    "Leader(2)": _leader,
    "Resigned(2)": lambda: Bench(state=ElectionState(2, 1, key(1))),
}


def perform(bench: Bench, command: str) -> None:
    words = command.split()
    options = dict(word.split("=") for word in words if "=" in word)
    node_id, epoch = int(words[1]) if len(words) > 1 else -1, int(options.get("e", bench.raft.epoch))
    match words[0]:
        case "votes":
            asked = bench.votes(pre_vote=bench.raft.role == "Prospective")[node_id]
            leader = bench.raft.leader_id if words[2] == "heard" else -1
            bench.reply(asked, bench.vote(words[2] == "yes", leader=leader))
        case "tells":
            is_searching = bench.raft.role == "Unattached"  # of whomever it has drawn
            send = next(s for s in reversed(bench.under_way) if is_searching or s.to.id == node_id)
            bench.reply(send.request, _newer(send.request, epoch, int(options.get("leader", -1))))
        case "begin":
            bench.ask(BeginQuorumEpochRequest(key(1), epoch, node_id, {"CONTROLLER": address(node_id)}))
            if any(
                isinstance(send.request, RaftFetchRequest) and not send.request.max_wait_s
                for send in bench.of(do.SendRequest)
            ):
                bench.confirm(node_id, RaftFetchResponse(NONE, epoch, node_id))
        case "vote" | "asks":
            bench.ask(VoteRequest(key(1), epoch, key(node_id), 0, 9, pre_vote=words[0] == "asks"))
        case "lost":
            bench.step(on.Disconnected(node_id))
        case "resign":
            bench.step(on.Resign())
        case "wait":
            before = bench.raft.role
            while bench.raft.role == before:
                bench.now = bench.raft.deadline
                bench.step(on.Tick())


def _newer(request: object, epoch: int, leader: int) -> Response:
    known = address(leader) if leader > 0 else None
    if isinstance(request, VoteRequest):
        return VoteResponse(NONE, epoch, leader, False, known)
    if isinstance(request, BeginQuorumEpochRequest | EndQuorumEpochRequest):
        return QuorumEpochResponse(NONE, epoch, leader, known)
    return RaftFetchResponse(NONE, epoch, leader, leader_address=known)


@pytest.mark.parametrize(("start", "happens", "then"), ROWS, ids=[f"{a}: {b}" for a, b, _ in ROWS])
def test_transition(start: str, happens: str, then: str) -> None:
    bench = STARTS[start]()
    assert f"{bench.raft.role}({bench.raft.epoch})" == start
    for command in happens.split(";"):
        perform(bench, command)
    assert f"{bench.raft.role}({bench.raft.epoch})" == then


def test_the_rows_take_every_way_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: set[tuple[type[State], type[State]]] = set()
    enter = Core._enter

    def note(core: Core, state: State, *rest: object) -> None:
        taken.add((type(core.state), type(state)))
        enter(core, state, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Core, "_enter", note)
    for start, happens, _ in ROWS:
        bench = STARTS[start]()
        for command in happens.split(";"):
            perform(bench, command)
    Bench([1], state=ElectionState(1, 1))  # the only voter does not wait for anybody
    every = {(source, target) for source, targets in TRANSITIONS.items() for target in targets}
    assert {(a.__name__, b.__name__) for a, b in every - taken} == set()
    assert (Resigned, Resigned) in taken
