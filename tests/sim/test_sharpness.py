"""Nodes that break a rule of the protocol are caught, each within a few histories."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strandline.histories import pool
from strandline.node.quorum.driver import Driver
from strandline.raft import elections, following, high_watermark, serving
from strandline.raft.core import Core
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import OffsetAndEpoch, ReplicaKey
from strandline.raft.states import Leader, Prospective, Unattached

SEEDS_TO_CATCH = 25


def caught(scenario: str, *properties: str, seeds: int = SEEDS_TO_CATCH) -> None:
    """Play histories of a scenario until one shows a problem of this kind."""
    others = []
    for seed in range(seeds):
        text = "\n".join(pool.play(seed, scenario).problems)
        if any(name in text for name in properties):
            return
        others += [text] if text else []
    pytest.fail(f"{seeds} histories did not notice, but {others}")


def test_a_vote_that_is_not_on_disk_when_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    saving = Driver._save
    under_way = []

    async def save_later(self: Driver, state: ElectionState) -> None:
        under_way.append(asyncio.ensure_future(saving(self, state)))

    monkeypatch.setattr(Driver, "_save", save_later)
    caught("leader killed", "VoteBeforeReply", "SaveBeforeSend", "MonotonicEpoch")


def test_a_leader_that_counts_itself_before_its_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    advance = serving.advance

    class Hasty:
        def __init__(self, log: Any) -> None:
            self._log = log

        def __getattr__(self, name: str) -> Any:
            return self._log.end_offset if name == "flushed_offset" else getattr(self._log, name)

    def advance_at_once(core: Core, leader: Leader) -> None:
        honest, core.log = core.log, Hasty(core.log)
        try:
            advance(core, leader)
        finally:
            core.log = honest

    monkeypatch.setattr(serving, "advance", advance_at_once)
    caught("slow disks", "MajorityReachedHighWatermark")


def test_a_high_watermark_over_an_older_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    advance = high_watermark.advance
    monkeypatch.setattr(high_watermark, "advance", lambda known, ends, start: advance(known, ends, -1))
    caught("repeated kills", "CommittedInOwnEpoch")


def test_a_voter_that_votes_for_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def grant(core: Core, candidate: ReplicaKey, now: float) -> bool:
        if isinstance(core.state, Unattached | Prospective):
            core.to_unattached(core.epoch, now + core.election_timeout(), candidate)
            return True
        return False

    monkeypatch.setattr(elections, "_grant_vote", grant)
    # Two that ask in the same epoch are rare as long as pre-votes keep them apart.
    monkeypatch.setattr(elections, "_grant_pre_vote", lambda core, request, now: not isinstance(core.state, Leader))
    caught("two and three", "OneVote", "SingleLeader", "VoteBeforeReply", seeds=60)


def test_a_follower_that_cuts_what_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    truncate = following._truncate
    monkeypatch.setattr(Core, "floor", 0)

    def cut_more(core: Core, diverging: OffsetAndEpoch) -> bool:
        return truncate(core, diverging._replace(offset=max(0, diverging.offset - 5)))

    monkeypatch.setattr(following, "_truncate", cut_more)
    caught("leader cut off", "CommittedIsKept", "cut at")
