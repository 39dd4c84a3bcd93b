"""Trying again: one operation until its time is over, or one question to the leaders of many partitions.

Always true: only what may succeed the next time is tried again, with a wait in between, and the last error is what is
raised.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from strandline.client.core.backoff import delay_s
from strandline.client.core.cluster_metadata import REFRESH
from strandline.client.errors import Closed, TimedOut
from strandline.client.flow.client import FlowClient
from strandline.client.flow.io import gather, sleep
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import TopicPartition

T = TypeVar("T")
UNKNOWN_ATTEMPTS_MAX = 5
"""How often a topic or partition that no broker knows is asked for: it may have been made a moment ago."""
Answers = dict[TopicPartition, T | KafkaError]


def check(code: int, message: str | None = "") -> None:
    """KafkaError unless the code is NONE."""
    if code != ErrorCode.NONE:
        raise KafkaError(error_code(code), message or "")


async def retrying(client: FlowClient, attempt: Callable[[], Awaitable[T]], timeout_ms: int | None = None) -> T:
    """The first success within the time; what is not retriable is raised at once."""
    deadline = client.io.now() + (timeout_ms or client.config.default_api_timeout_ms) / 1000
    failures = 0
    while True:
        try:
            return await attempt()
        except KafkaError as error:
            failures += 1
            wait_s = delay_s(client.config.retry_backoff, failures, client.randomness)
            if not error.retriable or isinstance(error, Closed) or client.io.now() + wait_s > deadline:
                raise
            await sleep(client.io, wait_s)
            if error.code in REFRESH:
                await _refresh_if_possible(client)


async def _refresh_if_possible(client: FlowClient) -> None:
    try:
        await client.refresh(client.cluster.topics)
    except KafkaError as error:
        if not error.retriable:
            raise


async def by_leader(
    client: FlowClient,
    partitions: Iterable[TopicPartition],
    ask: Callable[[int, list[TopicPartition]], Awaitable[Answers[T]]],
    timeout_ms: int | None = None,
) -> Answers[T]:
    """Ask each partition's leader, all leaders beside each other, until every partition has an answer that lasts."""
    deadline = client.io.now() + (timeout_ms or client.config.default_api_timeout_ms) / 1000
    answers: Answers[T] = {}
    left = list(dict.fromkeys(partitions))
    failures = 0
    while left:
        try:
            await (client.refresh if failures else client.ensure_topics)({topic for topic, _ in left})
            answers.update(await _ask_once(client, left, ask))
        except KafkaError as error:
            if not error.retriable or isinstance(error, Closed):
                raise
            answers.update(dict.fromkeys(left, error))
        failures += 1
        left = [key for key in left if _is_worth_asking_again(answers[key], failures)]
        wait_s = delay_s(client.config.retry_backoff, failures, client.randomness)
        if not left or client.io.now() + wait_s > deadline:
            break
        await sleep(client.io, wait_s)
    return answers


def _is_worth_asking_again(answer: object, attempts: int) -> bool:
    if not isinstance(answer, KafkaError) or not answer.retriable:
        return False
    return answer.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or attempts < UNKNOWN_ATTEMPTS_MAX


async def _ask_once(
    client: FlowClient,
    partitions: list[TopicPartition],
    ask: Callable[[int, list[TopicPartition]], Awaitable[Answers[T]]],
) -> Answers[T]:
    answers: Answers[T] = {}
    by_node: dict[int, list[TopicPartition]] = {}
    for key in partitions:
        leader = client.cluster.leader(*key)
        if leader is not None:
            by_node.setdefault(leader.node_id, []).append(key)
        else:
            answers[key] = _no_leader(client, key)

    async def ask_node(node_id: int, keys: list[TopicPartition]) -> Answers[T]:
        missing = TimedOut(f"node {node_id} left a partition out of its answer")
        try:
            return dict.fromkeys(keys, missing) | await ask(node_id, keys)
        except KafkaError as error:
            if isinstance(error, Closed):
                raise
            return dict.fromkeys(keys, error)

    for part in await gather(client.io, [ask_node(node_id, keys) for node_id, keys in by_node.items()]):
        answers.update(part)
    return answers


def _no_leader(client: FlowClient, key: TopicPartition) -> KafkaError:
    topic, partition = key
    known = client.cluster.topics.get(topic)
    if known is None:
        return KafkaError(client.cluster.errors.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), f"topic '{topic}'")
    if partition not in known.partitions:
        return KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic} has {len(known.partitions)} partitions, no {partition}"
        )
    return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader now")
