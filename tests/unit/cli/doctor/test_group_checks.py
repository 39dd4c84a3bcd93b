"""What doctor says of groups and cleaners."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.cli.doctor.checks import OK, WARN
from strandline.cli.doctor.group_checks import REBALANCE_S, cleaners, groups, metrics_of, uncleanable
from strandline.client.core.cluster_metadata import BrokerMetadata
from strandline.client.flow.descriptions import ConfigEntry
from strandline.errors import ErrorCode, KafkaError
from tests.unit.cli.groups.in_memory_groups import InMemoryGroups, member
from tests.unit.cli.monitoring.serving_nodes import free_port


def rests(seconds: float) -> None:
    raise AssertionError("there is nothing to wait for")


def test_groups_are_counted_in_one_line():
    found = InMemoryGroups({})
    assert list(groups(found, rests)) == [(OK, "groups", "none", "")]  # type: ignore[arg-type]
    found.add("a", {})
    found.add("b", {}, member("m"))
    found.add("c", {})
    assert list(groups(found, rests)) == [(OK, "groups", "3: 2 Empty, 1 Stable", "")]  # type: ignore[arg-type]


def test_only_a_rebalance_that_does_not_end_is_a_finding():
    found = InMemoryGroups({})
    found.add("slow", {}, member("m"), state="PreparingRebalance")
    found.add("quick", {}, member("m"), state="CompletingRebalance")
    waited = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        found.add("quick", {}, member("m"))
        found.add("later", {}, member("m"), state="PreparingRebalance")

    first, *others = groups(found, sleep)  # type: ignore[arg-type]
    assert (first.level, first.found) == (OK, "3: 2 PreparingRebalance, 1 Stable")
    assert [(other.level, other.found) for other in others] == [
        (WARN, "slow is PreparingRebalance, as it was 5 s ago"),
    ]
    assert waited == [REBALANCE_S]
    assert "groups describe slow --members" in others[0].advice


def test_groups_that_can_not_be_listed_are_a_finding():
    class Silent:
        def list_groups(self, **filters):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "still loading")

    [finding] = groups(Silent(), rests)  # type: ignore[arg-type]
    assert (finding.level, finding.found) == (WARN, "cannot be listed: still loading")


METRIC = "kafka_log_logcleanermanager_uncleanable_partitions_count"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        (f'# HELP {METRIC} Logs.\n{METRIC}{{logDirectory="/a"}} 2.0\n{METRIC}{{logDirectory="/{{b}}"}} 1.0\n', 3),
        (f"{METRIC} 1.0\n", 1),
        ('kafka_log_logcleanermanager_uncleanable_bytes{logDirectory="/a"} 4096.0\n', 0),
    ],
)
def test_logs_that_can_not_be_cleaned_are_counted(text: str, expected: int):
    assert uncleanable(text) == expected


def test_only_a_cleaner_that_can_not_clean_is_a_finding():
    [finding] = cleaners({1: f"{METRIC} 0.0\n", 2: f"{METRIC} 2.0\n", 3: ""})
    assert (finding.level, finding.found) == (WARN, "node 2 cannot compact 2 logs, which grow")


@pytest.mark.parametrize("is_given", [False, True])
def test_metrics_that_can_not_be_had_are_none(is_given: bool):
    listener = f"127.0.0.1:{free_port(1)}" if is_given else ""

    class NoConfigs:
        def describe_configs(self, resources):
            return {resources[0]: [ConfigEntry("metrics.listener", listener, 5, False, False, 0, None, ())]}

    assert metrics_of(NoConfigs(), BrokerMetadata(1, "127.0.0.1", 9092, None)) == ""  # type: ignore[arg-type]
