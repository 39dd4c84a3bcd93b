# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import json

import pytest

from strandline.cli.reassignment import reassignment_plan
from strandline.cli.reassignment.reassignment_plan import (
    PlanError,
    ReassignmentPlan,
    check,
    encode,
    parse_brokers,
    parse_plan,
    parse_topics,
)


def document(*partitions: object, **others: object) -> str:
    return json.dumps({"version": 1, "partitions": list(partitions), **others})


def entry(topic: str = "t", partition: int = 0, replicas: object = (1, 2), **others: object) -> dict[str, object]:
    return {"topic": topic, "partition": partition, "replicas": replicas, **others}


def test_a_plan_and_the_log_dirs_it_names():
    plan = parse_plan(document(entry("u", 1, [3]), entry(log_dirs=["any", "/data"])))
    assert plan == ReassignmentPlan(((("u", 1), (3,)), (("t", 0), (1, 2))), {("t", 0, 2): "/data"})
    assert list(plan.targets.items()) == [(("t", 0), (1, 2)), (("u", 1), (3,))]
    assert (plan.topics, plan.brokers) == (["t", "u"], {1, 2, 3})


def test_a_version_may_be_left_out():
    assert parse_plan('{"partitions": []}') == parse_plan("{}") == ReassignmentPlan((), {})


def test_what_is_written_is_kafkas_and_can_be_read_again():
    text = encode({("u", 0): [3], ("t", 1): (2, 1)}, {("t", 1, 1): "/d"})
    assert text == (
        '{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[2,1],"log_dirs":["any","/d"]},'
        '{"topic":"u","partition":0,"replicas":[3],"log_dirs":["any"]}]}'
    )
    assert parse_plan(text) == ReassignmentPlan(((("t", 1), (2, 1)), (("u", 0), (3,))), {("t", 1, 1): "/d"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON: "),
        ("[]", 'not a JSON object with "version" and "partitions"'),
        ('{"version": 2}', "Not supported version field value 2"),
        ('{"version": true}', "Not supported version field value True"),
        ('{"partitions": {}}', '"partitions" must be a list of objects'),
        (document(3), '"partitions" must be a list of objects'),
        (document(entry(topic=7)), 'partitions[0]: "topic" must be a string'),
        (document(entry(), entry(partition="1")), 'partitions[1]: "partition" must be a whole number'),
        (document(entry(replicas=[1, True])), 'partitions[0]: "replicas" must be a list of broker ids'),
        (document({"topic": "t", "partition": 0}), 'partitions[0]: "replicas" must be a list of broker ids'),
        (document(entry(log_dirs="any")), 'partitions[0]: "log_dirs" must be a list of paths'),
        (
            document(entry(log_dirs=["any"])),
            "Size of replicas list [1, 2] is different from size of log dirs list [any] for partition t-0",
        ),
    ],
)
def test_a_file_that_is_no_plan(text, reason):
    with pytest.raises(PlanError) as refused:
        parse_plan(text)
    assert refused.value.message.startswith(reason)
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([], "Partition reassignment list cannot be empty"),
        ([entry(replicas=[])], "Partition replica list cannot be empty"),
        ([entry(), entry(), entry("u"), entry("u")], "contains duplicate topic partitions: t-0,u-0"),
        (
            [entry(replicas=[1, 1]), entry("u", replicas=[2, 3, 3, 2])],
            "may not contain duplicate entries: t-0 contains multiple entries for 1. u-0 contains multiple entries for 3,2",
        ),
    ],
)
def test_a_plan_that_cannot_be_executed(entries, reason):
    with pytest.raises(PlanError) as refused:
        check(parse_plan(document(*entries)))
    assert refused.value.message.endswith(reason)


def test_topics_and_brokers():
    assert parse_topics('{"topics": [{"topic": "b"}, {"topic": "a"}]}') == ["b", "a"]
    with pytest.raises(PlanError, match=r"duplicate entries: \[a\]"):
        parse_topics('{"topics": [{"topic": "a"}, {"topic": "a"}]}')
    with pytest.raises(PlanError, match='"topic" must be a string'):
        parse_topics('{"topics": [{"name": "a"}]}')
    assert parse_brokers("3,1, 2") == [3, 1, 2]
    with pytest.raises(PlanError, match=r"duplicate entries: \[1\]"):
        parse_brokers("1,2,1")
    with pytest.raises(PlanError, match="'1,x' is not a list of broker ids"):
        parse_brokers("1,x")


def test_names():
    assert reassignment_plan.names([("t", 10), ("t", 2), ("a", 0)]) == "a-0, t-2, t-10"
