from __future__ import annotations

import pytest

from strandline.cli.durability import judge


@pytest.mark.parametrize(
    ("replication_factor", "min_insync", "unclean", "can_lose", "rule"),
    [
        (3, 2, False, False, "survives the loss of 1 broker"),
        (5, 3, False, False, "survives the loss of 2 brokers"),
        (1, 1, False, True, "ReplicationFactor 1"),
        (3, 1, False, True, "min.insync.replicas=1"),
        (3, 2, True, True, "unclean.leader.election.enable=true"),
        (2, 2, False, False, "with one broker down acks=all is refused"),
        (1, 2, False, False, "acks=all is refused at all times"),
    ],
)
def test_the_rule_behind_each_verdict(replication_factor, min_insync, unclean, can_lose, rule):
    verdict = judge(replication_factor, min_insync, unclean)
    assert verdict.can_lose is can_lose
    assert rule in verdict.rule


def test_only_the_recipe_is_ok():
    assert judge(3, 2, False).level == "ok"
    assert judge(2, 2, False).level == "warn"
    assert judge(3, 1, False).level == "warn"
