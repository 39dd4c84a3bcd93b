"""Asking leaders, and asking again."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import random

import pytest

from strandline.client.config import ClientConfig
from strandline.client.core.backoff import Backoff
from strandline.client.flow.client import FlowClient
from strandline.client.flow.retry import UNKNOWN_ATTEMPTS_MAX, Answers, by_leader, retrying
from strandline.client.selecting import Scheduler
from strandline.errors import ErrorCode, KafkaError

from ..server import Broker, serving_beside


@pytest.fixture
def client():
    broker = Broker()
    with serving_beside(broker):
        scheduler = Scheduler()
        config = ClientConfig(retry_backoff=Backoff(1, 2), default_api_timeout_ms=5_000)
        client = FlowClient(scheduler, [("127.0.0.1", broker.port)], config, random.Random(1))
        yield client
        scheduler.run(client.close())
        scheduler.close()


def run(client: FlowClient, coroutine):
    assert isinstance(client.io, Scheduler)
    return client.io.run(coroutine, 5.0)


def test_only_what_may_help_is_tried_again(client):
    attempts = []

    async def attempt() -> str:
        attempts.append(1)
        if len(attempts) < 3:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        if len(attempts) == 3:
            return "done"
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)

    assert run(client, retrying(client, attempt)) == "done"
    with pytest.raises(KafkaError, match="INVALID_TOPIC_EXCEPTION"):
        run(client, retrying(client, attempt))
    assert len(attempts) == 4


def test_leaders_are_asked_until_each_partition_has_its_answer(client):
    asked = []

    async def ask(node_id: int, keys: list[tuple[str, int]]) -> Answers[str]:
        asked.append((node_id, keys))
        return {("t", 0): "here" if len(asked) > 1 else KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)}

    answers = run(client, by_leader(client, [("t", 0), ("t", 7)], ask))
    assert answers["t", 0] == "here"
    assert asked == [(1, [("t", 0)])] * 2
    missing = answers["t", 7]
    assert isinstance(missing, KafkaError)
    assert missing.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_that_nobody_knows_is_given_up_soon(client):
    asked = []

    async def ask(node_id: int, keys: list[tuple[str, int]]) -> Answers[str]:
        asked.append(node_id)
        return dict.fromkeys(keys, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))

    run(client, by_leader(client, [("t", 0)], ask))
    assert len(asked) == UNKNOWN_ATTEMPTS_MAX
