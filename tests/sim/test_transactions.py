"""Histories with transactions: which seeds have them, and that they do something."""

from __future__ import annotations

from itertools import product

import pytest

from strandline.histories import setting as settings
from strandline.histories.coverage import TRANSACTION
from strandline.histories.fault_injector import PER_ACT_MAX, TRANSACTION_NOISE
from strandline.histories.history import play
from strandline.histories.replica_observation import PermittedLoss


def test_a_fifth_of_the_settings_has_transactions() -> None:
    drawn = [settings.draw(seed, lambda _: True) for seed in range(400)]
    found = [each for each in drawn if each.transactions is not None]
    assert 0.12 < len(found) / len(drawn) < 0.25
    assert {each.shape.transaction_version for each in found} == {0, 2}
    assert all(each.may_lose is PermittedLoss.NOTHING for each in found)
    assert {each.shape.transaction_version for each in drawn if each.transactions is None} == {0}
    plans = [each.transactions for each in found if each.transactions is not None]
    assert {min(plan.copiers, 1) for plan in plans} == {0, 1}
    assert {(plan.version, plan.protocol) for plan in plans} == set(product((0, 2), ("classic", "consumer")))
    # Below 2 the end of one transaction may end the next if it is sent twice, and nobody could tell.
    assert {plan.broker_request_ms for plan in plans if plan.version == 0} == {30_000}
    assert {plan.broker_request_ms for plan in plans if plan.version == 2} == {1_500, 30_000}


@pytest.mark.parametrize("seed", [12, 25])
def test_transactions_are_committed_and_aborted(seed: int) -> None:
    outcome = play(seed)
    assert outcome.problems == []
    assert outcome.coverage[TRANSACTION, "committed"] > 5
    assert outcome.coverage[TRANSACTION, "aborted"] > 1
    assert outcome.coverage[TRANSACTION, "CompleteCommit"] >= outcome.coverage[TRANSACTION, "committed"]
    between_steps = {fault.kind for fault in outcome.faults if fault.number // PER_ACT_MAX == TRANSACTION_NOISE}
    assert between_steps == {"late bytes", "lost reply"}
