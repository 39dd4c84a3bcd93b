"""What doctor finds in brokers' listeners."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.cli.doctor.checks import OK, WARN
from strandline.cli.doctor.listener_checks import listeners

ONE = {
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:10092",
    "controller.listener.names": "CONTROLLER",
    "security.inter.broker.protocol": "PLAINTEXT",
    "inter.broker.listener.name": None,
}
TWO = ONE | {
    "listeners": "PLAINTEXT://127.0.0.1:9092, broker://127.0.0.1:12092,CONTROLLER://127.0.0.1:10092",
    "inter.broker.listener.name": "broker",
}


@pytest.mark.parametrize(
    ("configs", "level", "found"),
    [
        (ONE, WARN, "broker 1: PLAINTEXT serves both clients and brokers: any client can act as a broker there"),
        (TWO, OK, "broker 1: brokers have a separate listener, BROKER"),
        (
            TWO | {"previous.inter.broker.listener.name": "plaintext"},
            WARN,
            "broker 1: PLAINTEXT still serves brokers besides BROKER: any client can act as a broker there",
        ),
    ],
)
def test_sec_t7_one_line_says_which_clients_can_act_as_a_broker(configs, level, found):
    [finding] = listeners({1: configs})
    assert (finding.level, finding.found) == (level, found)
    assert bool(finding.advice) == (level == WARN)


def test_brokers_alike_are_one_finding_and_others_have_their_own():
    assert [finding.found.partition(":")[0] for finding in listeners({1: TWO, 2: ONE, 3: TWO, 4: {}})] == [
        "broker 1, 3",
        "broker 2",
    ]
