"""Guards: an answer of the coordinator is worth one transaction (TXN-V2 to TXN-V5)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.log.verification_guards import NOT_REQUIRED, VerificationGuard, VerificationGuards

PID = 7


def note(
    guards: VerificationGuards,
    epoch: int = 0,
    sequence: int = 0,
    *,
    bumps: bool = False,
    pid: int = PID,
    transactional_id: str = "t",
) -> VerificationGuard:
    return guards.note(pid, epoch, sequence, bumps_epoch=bumps, now_ms=1000, transactional_id=transactional_id)


def refused(guards: VerificationGuards, guard: VerificationGuard | None, sequence: int = 0) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        guards.check(PID, guard, sequence)
    return error.value.code


def test_a_noted_guard_allows_its_batch() -> None:
    guards = VerificationGuards()
    guards.check(PID, note(guards), 0)


def test_txn_v2_a_producer_has_one_guard_and_a_newer_epoch_another() -> None:
    guards = VerificationGuards()
    guard = note(guards)
    assert note(guards) is guard
    newer = note(guards, epoch=1)
    assert newer is not guard
    assert note(guards, epoch=0) is guard
    assert note(guards, epoch=1) is newer
    guards.check(PID, guard, 0)
    guards.began(PID)
    assert refused(guards, guard) is ErrorCode.INVALID_TXN_STATE
    assert refused(guards, newer) is ErrorCode.INVALID_TXN_STATE
    assert len(guards.of_node) == 0


def test_txn_v3_a_stranger_who_claims_a_newer_epoch_keeps_no_answer_alive() -> None:
    """The producer speaks version 0: its next transaction has the same epoch. Nobody has confirmed the claim."""
    guards = VerificationGuards()
    note(guards, epoch=32_000, bumps=True, transactional_id="stranger")
    guard = note(guards, epoch=5, sequence=7)
    guards.ended(PID, 5)
    assert refused(guards, guard) is ErrorCode.INVALID_TXN_STATE


def test_txn_v5_a_stranger_with_another_transactional_id_leaves_no_sequence_missing() -> None:
    guards = VerificationGuards()
    stranger = note(guards, epoch=5, sequence=0, transactional_id="stranger")
    guard = note(guards, epoch=5, sequence=7)
    guards.check(PID, guard, 7)
    guards.remove(stranger)
    guards.remove(stranger)
    assert refused(guards, stranger) is ErrorCode.INVALID_TXN_STATE
    guards.check(PID, guard, 7)
    assert len(guards) == len(guards.of_node) == 1
    guards.remove(guard)
    assert len(guards) == len(guards.of_node) == 0


def test_without_a_guard_nothing_is_opened_unless_verification_is_off() -> None:
    guards = VerificationGuards()
    assert refused(guards, None) is ErrorCode.INVALID_TXN_STATE
    note(guards)
    assert refused(guards, None) is ErrorCode.INVALID_TXN_STATE
    guards.check(PID, NOT_REQUIRED, 9)


@pytest.mark.parametrize("bumps", [False, True])
def test_txn_v3_a_marker_or_a_batch_uses_the_answer_up(bumps: bool) -> None:
    """Verified, aborted, begun anew without this partition: the old batch would open a transaction that nobody ends."""
    guards = VerificationGuards()
    guard = note(guards, bumps=bumps)
    guards.ended(PID, 1)
    assert refused(guards, guard) is ErrorCode.INVALID_TXN_STATE
    guard = note(guards, epoch=1, bumps=bumps)
    guards.began(PID)
    assert refused(guards, guard) is ErrorCode.INVALID_TXN_STATE


def test_txn_v3_where_transactions_share_an_epoch_its_marker_removes_the_guard() -> None:
    guards = VerificationGuards()
    guard = note(guards, epoch=3)
    guards.ended(PID, 3)
    assert refused(guards, guard) is ErrorCode.INVALID_TXN_STATE


def test_txn_v4_the_marker_of_the_transaction_before_leaves_the_next_guard_alone() -> None:
    guards = VerificationGuards()
    guard = note(guards, epoch=4, bumps=True)
    guards.ended(PID, 4)
    guards.check(PID, guard, 0)
    guards.ended(PID, 5)
    assert refused(guards, guard) is ErrorCode.INVALID_TXN_STATE


def test_txn_v5_a_batch_above_a_missing_one_is_out_of_order() -> None:
    guards = VerificationGuards()
    guard = note(guards, sequence=5)
    note(guards, sequence=8)
    assert refused(guards, guard, 8) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    note(guards, sequence=2)
    assert refused(guards, guard, 5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    guards.check(PID, guard, 2)


def test_txn_v5_a_batch_without_a_sequence_is_checked_for_the_rest() -> None:
    guards = VerificationGuards()
    guard = note(guards, sequence=-1)
    guards.check(PID, guard, 0)


def test_txn_p6_guards_whose_batch_never_came_expire() -> None:
    guards = VerificationGuards()
    guard = note(guards)
    guards.expire(1999, 1000)
    guards.check(PID, guard, 0)
    guards.expire(2000, 1000)
    assert len(guards) == 0


def test_txn_v9_a_cut_forgets_them() -> None:
    guards = VerificationGuards()
    guard = note(guards)
    guards.clear()
    assert refused(guards, guard) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_sec_l10_questions_about_made_up_producers_are_bounded_for_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.log.verification_guards.GUARDS_MAX", 3)
    attacked, other = VerificationGuards(), VerificationGuards()
    other.of_node = attacked.of_node
    first = note(other)
    for producer_id in range(100, 103):
        last = note(attacked, pid=producer_id)
    assert (len(attacked), len(other), len(attacked.of_node)) == (3, 0, 3)
    assert refused(other, first) is ErrorCode.INVALID_TXN_STATE
    attacked.check(102, last, 0)
    note(other, epoch=1)
    assert (len(attacked), len(other)) == (2, 1), "the oldest of all goes"


@pytest.mark.parametrize("how", ["clear", "expire", "ended", "began"])
def test_sec_l10_a_guard_that_is_gone_counts_no_more(how: str) -> None:
    guards = VerificationGuards()
    note(guards)
    note(guards, epoch=1)
    ways: dict[str, Callable[[], None]] = {
        "clear": guards.clear,
        "expire": lambda: guards.expire(2000, 1000),
        "ended": lambda: guards.ended(PID, 2),
        "began": lambda: guards.began(PID),
    }
    ways[how]()
    assert len(guards) == len(guards.of_node) == 0
