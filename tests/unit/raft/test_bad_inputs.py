"""Whatever peers say, Raft answers, and goes on; it never raises, and never forgets who it is (D3, D10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.errors import ErrorCode
from strandline.raft import effects as do
from strandline.raft import events as on
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import (
    AddVoterRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    OffsetAndEpoch,
    QuorumEpochResponse,
    RaftFetchRequest,
    RaftFetchResponse,
    RemoveVoterRequest,
    ReplicaKey,
    Request,
    Response,
    UpdateVoterRequest,
    VoteRequest,
    VoteResponse,
)
from tests.unit.raft.bench import Bench
from tests.unit.raft.cluster import address, key
from tests.unit.raft.memory_log import MemoryLog

EPOCHS = st.sampled_from([-(2**31), -1, 0, 1, 2, 3, 4, 2**31 - 2, 2**31 - 1])
OFFSETS = st.sampled_from([-(2**63), -1, 0, 1, 2, 3, 4, 7, 2**63 - 1])
IDS = st.sampled_from([-(2**31), -1, 0, 1, 2, 3, 7, 2**31 - 1])
KEYS = IDS.map(ReplicaKey) | st.sampled_from([key(n) for n in (1, 2, 3, 7)])
SIZES = st.sampled_from([-1, 0, 1, 5, 2**31 - 1])
WAITS = st.sampled_from([-1.0, 0.0, 0.5])
ENDPOINTS = st.sampled_from([{}, {"CONTROLLER": address(2)}, {"OTHER": address(3)}])
ADDRESSES = st.none() | st.sampled_from([address(1), address(2), address(9)])
VERSIONS = st.sampled_from([range(0), range(1), range(2), range(-1, 2), range(3, 1)])
SNAPSHOTS = st.builds(OffsetAndEpoch, OFFSETS, EPOCHS)
ERRORS = st.sampled_from(list(ErrorCode))
BYTES = st.binary(max_size=100)

REQUESTS: st.SearchStrategy[Request] = st.one_of(
    st.builds(VoteRequest, KEYS, EPOCHS, KEYS, EPOCHS, OFFSETS, st.booleans()),
    st.builds(BeginQuorumEpochRequest, KEYS, EPOCHS, IDS, ENDPOINTS),
    st.builds(EndQuorumEpochRequest, EPOCHS, IDS, st.lists(KEYS, max_size=3).map(tuple), ENDPOINTS),
    st.builds(RaftFetchRequest, KEYS, EPOCHS, OFFSETS, EPOCHS, WAITS, OFFSETS, SIZES),
    st.builds(FetchSnapshotRequest, KEYS, EPOCHS, SNAPSHOTS, OFFSETS, SIZES),
    st.builds(AddVoterRequest, KEYS, ENDPOINTS, WAITS, st.booleans()),
    st.builds(RemoveVoterRequest, KEYS),
    st.builds(UpdateVoterRequest, EPOCHS, KEYS, ENDPOINTS, VERSIONS),
)
RESPONSES: st.SearchStrategy[Response] = st.one_of(
    st.builds(VoteResponse, ERRORS, EPOCHS, IDS, st.booleans(), ADDRESSES),
    st.builds(QuorumEpochResponse, ERRORS, EPOCHS, IDS, ADDRESSES),
    st.builds(
        RaftFetchResponse,
        ERRORS,
        EPOCHS,
        IDS,
        OFFSETS,
        OFFSETS,
        st.none() | SNAPSHOTS,
        st.none() | SNAPSHOTS,
        st.none(),
        BYTES,
        ADDRESSES,
    ),
    st.builds(FetchSnapshotResponse, ERRORS, EPOCHS, IDS, SNAPSHOTS, OFFSETS, OFFSETS, BYTES, ADDRESSES),
    st.builds(ApiVersionsResponse, ERRORS, VERSIONS),
)
WAIT = st.floats(0.0, 3.0)
Happening = tuple[str, Any]
HAPPENINGS: st.SearchStrategy[list[Happening]] = st.lists(
    st.tuples(st.just("ask"), REQUESTS) | st.tuples(st.just("reply"), RESPONSES) | st.tuples(st.just("wait"), WAIT),
    max_size=25,
)


def _log() -> MemoryLog:
    log = MemoryLog()
    for epoch in (1, 1, 2):
        log.append(epoch, [(b"", b"value")])
    log.flush(3)
    return log


def _follower() -> Bench:
    bench = Bench(log=_log())
    bench.follow(2, epoch=3)
    return bench


def _leader() -> Bench:
    bench = Bench(log=_log(), kraft_version=1)
    bench.become_leader()
    bench.fetched_by(2)
    return bench


STARTS: dict[str, Callable[[], Bench]] = {
    "unattached": lambda: Bench(log=_log()),
    "candidate": lambda: Bench(log=_log(), state=ElectionState(3, -1, key(1))),
    "resigned": lambda: Bench(log=_log(), state=ElectionState(3, 1, key(1))),
    "follower": _follower,
    "leader": _leader,
    "broker": lambda: Bench(log=_log(), me=9, is_controller=False),
}


@pytest.mark.parametrize("start", STARTS)
@settings(max_examples=60, deadline=None)
@given(happenings=HAPPENINGS)
def test_nothing_that_a_peer_says_is_an_exception(start: str, happenings: list[Happening]) -> None:
    bench = STARTS[start]()
    for what, content in happenings:
        epoch = bench.raft.epoch
        if what == "ask":
            bench.ask(content)
        elif what == "reply" and bench.under_way:
            send = bench.under_way.pop(0)
            bench.step(on.Replied(send.to, send.request, content))
        elif what == "wait":
            bench.wait(content)
        if any(isinstance(effect, do.FailQuorum) for effect in bench.effects):
            return  # the node stops; that is an answer too
        bench.flush()
        assert epoch <= bench.raft.epoch < 2**31 - 1
        assert bench.raft.epoch == bench.saved.epoch
