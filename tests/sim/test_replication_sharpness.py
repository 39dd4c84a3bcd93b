"""Replicas that break a rule of the protocol are caught, each within a few histories."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.metadata.image import PartitionImage
from strandline.replica.isr import Isr, IsrWish
from strandline.replica.leadership import Leadership
from strandline.replica.partition import Done, Partition
from tests.sim.test_sharpness import caught


def test_an_acknowledgement_before_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(self: Partition, end_offset: int, done: Done, *rest: object) -> None:
        done(ErrorCode.NONE)

    monkeypatch.setattr(Partition, "when_committed", at_once)
    caught("chase of the leader", "acknowledged before it was committed", "lost-write", seeds=10)


def test_a_leader_that_counts_only_who_is_in_sync_for_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    wishing = Isr.wish

    def wish(self: Isr, wish: IsrWish) -> None:
        wishing(self, wish)
        self.maximal = self.isr

    monkeypatch.setattr(Isr, "wish", wish)
    caught("chase of the leader", "MaximalIsr", seeds=10)


def test_a_leader_that_forgets_who_is_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    wishing = Isr.wish

    def wish(self: Isr, wish: IsrWish) -> None:
        wishing(self, wish)
        self.maximal = wish.replicas

    monkeypatch.setattr(Isr, "wish", wish)
    caught("follower paused", "MaximalIsr", "CandidateCompleteness", "OneCommittedLog", seeds=10)


def test_a_follower_that_cuts_its_log_at_its_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    follow = Partition._follow

    def cut_first(self: Partition, state: PartitionImage) -> None:
        is_new = state.leader_epoch > self.leader_epoch
        follow(self, state)
        if is_new and not self.offline and self.high_watermark < self.log.log_end_offset:
            self.truncate(self.high_watermark, "as before KIP-101")

    monkeypatch.setattr(Partition, "_follow", cut_first)
    caught("chase of the leader", "CandidateCompleteness", "LeaderCompleteness", seeds=10)


def test_a_watermark_that_does_not_wait_for_enough_in_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    reach = Leadership.high_watermark
    monkeypatch.setattr(
        Leadership, "high_watermark", lambda self, end, known, min_isr, now: reach(self, end, known, 0, now)
    )
    caught("one lossy restart below the minimum", "HighWatermark", seeds=10)
