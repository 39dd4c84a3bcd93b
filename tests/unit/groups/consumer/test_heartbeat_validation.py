"""Requests that make no sense are refused, whatever the group."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.consumer.heartbeat_validation import validate
from strandline.wire import messages
from tests.unit.groups.consumer.transcript import CONSUMER_GROUP_HEARTBEAT

JOIN = {
    "group_id": "g",
    "member_id": "a",
    "member_epoch": 0,
    "rebalance_timeout_ms": 1000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}
BEAT = {"group_id": "g", "member_id": "a", "member_epoch": 3}


def code(fields: dict[str, Any], version: int = 1) -> ErrorCode:
    try:
        validate(messages.request(CONSUMER_GROUP_HEARTBEAT)(**fields), version, ("uniform", "range"))
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


@pytest.mark.parametrize(
    "fields",
    [
        JOIN,
        JOIN | {"subscribed_topic_names": []},
        JOIN | {"subscribed_topic_names": None, "subscribed_topic_regex": ""},
        JOIN | {"server_assignor": "range"},
        BEAT,
        BEAT | {"member_epoch": -1},
        BEAT | {"member_epoch": -2, "instance_id": "i"},
    ],
)
def test_what_makes_sense_passes(fields: dict[str, Any]) -> None:
    assert code(fields) is ErrorCode.NONE


@pytest.mark.parametrize(
    "fields",
    [
        JOIN | {"group_id": " "},
        JOIN | {"member_id": ""},
        JOIN | {"instance_id": ""},
        JOIN | {"rack_id": ""},
        JOIN | {"rebalance_timeout_ms": -1},
        JOIN | {"topic_partitions": None},
        JOIN | {"topic_partitions": [messages.request(CONSUMER_GROUP_HEARTBEAT).TopicPartitions()]},
        JOIN | {"subscribed_topic_names": None},
        BEAT | {"member_epoch": -2},
        BEAT | {"member_epoch": -3},
    ],
)
def test_what_makes_none_does_not(fields: dict[str, Any]) -> None:
    assert code(fields) is ErrorCode.INVALID_REQUEST


def test_an_assignor_must_be_served() -> None:
    assert code(JOIN | {"server_assignor": "sticky"}) is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_before_version_1_the_coordinator_makes_up_the_id_of_who_joins() -> None:
    assert code(JOIN | {"member_id": ""}, version=0) is ErrorCode.NONE
    assert code(BEAT | {"member_id": ""}, version=0) is ErrorCode.INVALID_REQUEST
