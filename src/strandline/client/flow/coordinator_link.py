"""Requests to the coordinators of groups and of transactional ids, wherever they are by now.

Always true: a coordinator whose connection closed is asked for again at once, also when nothing was under way; while
the one that brokers name cannot be reached, they are asked again and again, because soon they will name another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from strandline.client.core.backoff import delay_s
from strandline.client.core.cluster_metadata import BrokerMetadata
from strandline.client.core.group.coordinator import (
    BACKOFF,
    FIND_COORDINATOR,
    CoordinatorLookup,
    CoordinatorType,
    brokers,
    question,
)
from strandline.client.errors import Closed, ConnectionLost, TimedOut
from strandline.client.flow.client import MAIN, FlowClient
from strandline.client.flow.io import Condition, gather, sleep
from strandline.errors import KafkaError

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

T = TypeVar("T")
R = TypeVar("R", bound="ApiResponse")
FIND_TIMEOUT_MS = 5_000
"""A broker that hangs is not waited for longer: any other knows it too."""
NO_DEADLINE = float("inf")


class CoordinatorReply(NamedTuple, Generic[R]):
    node_id: int
    """Who gave it."""
    message: R


class CoordinatorLink:
    """The coordinator of one group or transactional id."""

    def __init__(
        self,
        client: FlowClient,
        group_id: str,
        on_gone: Callable[[], None] = lambda: None,
        type_: CoordinatorType = CoordinatorType.GROUP,
    ) -> None:
        self._client = client
        self._io = client.io
        self._core = CoordinatorLookup(group_id, client.randomness, type_)
        self._on_gone = on_gone
        self._finding: Condition | None = None
        self._is_closed = False
        client.on_closed.append(self._connection_closed)

    @property
    def node_id(self) -> int | None:
        """None: it is to be found."""
        return self._core.node_id

    async def request(
        self,
        api_key: int,
        message: ApiRequest[R],
        *,
        timeout_ms: int,
        deadline: float = NO_DEADLINE,
        version_max: int | None = None,
        version_min: int = 0,
        lane: int = MAIN,
    ) -> CoordinatorReply[R]:
        """One request, after the coordinator was found if need be.
        ConnectionLost and the codes inside are the caller's.
        """
        node_id = await self.find(deadline)
        timeout_ms = round(min(timeout_ms, max(1.0, (deadline - self._io.now()) * 1000)))
        try:
            reply = await self._client.request(
                node_id,
                api_key,
                message,
                timeout_ms=timeout_ms,
                version_max=version_max,
                version_min=version_min,
                lane=lane,
            )
        except ConnectionLost:
            self.gone(node_id)
            raise
        return CoordinatorReply(node_id, reply)

    def gone(self, node_id: int) -> None:
        """This node did not answer, or said that it is not the coordinator."""
        if node_id == self._core.node_id:
            self._core.gone(node_id, self._io.now())
            self._on_gone()

    def serves(self) -> None:
        self._core.serves()

    async def find(self, deadline: float = NO_DEADLINE) -> int:
        """The node id of the coordinator; TimedOut if no broker knew it by then."""
        while (node_id := self._core.node_id) is None:
            if self._is_closed:
                raise Closed("consumer" if self._core.type is CoordinatorType.GROUP else "producer")
            left_s = deadline - self._io.now()
            if left_s <= 0:
                raise TimedOut(f"no coordinator of {self._core.type.noun} '{self._core.group_id}' was found in time")
            if self._finding is not None:
                await self._finding.wait(None if left_s == NO_DEADLINE else left_s)
                continue
            self._finding = Condition(self._io)
            try:
                await sleep(self._io, min(left_s, self._core.retry_at - self._io.now()))
                await self._ask()
            finally:
                finding, self._finding = self._finding, None
                finding.notify_all()
        return node_id

    async def _ask(self) -> None:
        core = self._core
        try:
            response = await self._client.request(
                None, FIND_COORDINATOR, question([core.group_id], core.type), timeout_ms=FIND_TIMEOUT_MS
            )
        except KafkaError as error:
            if not error.retriable or isinstance(error, Closed):
                raise
            core.failed(self._io.now())
            return
        core.answered(response, self._client.cluster, self._io.now())
        if core.node_id is not None and self._client.is_failing(core.node_id):
            core.failed(self._io.now())

    def _connection_closed(self, node_id: int) -> None:
        self.gone(node_id)

    def close(self) -> None:
        """The coordinator is looked for no longer."""
        self._is_closed = True
        self._client.on_closed.remove(self._connection_closed)


async def find_coordinators(
    client: FlowClient, keys: Sequence[str], type_: CoordinatorType = CoordinatorType.GROUP
) -> dict[str, BrokerMetadata | KafkaError]:
    """All in one question, where brokers take that."""

    async def ask(asked: Sequence[str]) -> dict[str, BrokerMetadata | KafkaError]:
        return brokers(await client.request(None, FIND_COORDINATOR, question(asked, type_)), asked, type_)

    found = await ask(keys)
    for part in await gather(client.io, [ask([key]) for key in keys if key not in found]):
        found |= part
    return found


async def by_coordinator(
    client: FlowClient,
    keys: Iterable[str],
    ask: Callable[[BrokerMetadata, list[str]], Awaitable[dict[str, T | KafkaError]]],
    type_: CoordinatorType = CoordinatorType.GROUP,
    timeout_ms: int | None = None,
) -> dict[str, T | KafkaError]:
    """Ask the coordinator of each key, all beside each other, until every key has an answer that lasts."""
    deadline = client.io.now() + (timeout_ms or client.config.default_api_timeout_ms) / 1000
    answers: dict[str, T | KafkaError] = {}
    left = list(dict.fromkeys(keys))
    failures = 0
    while left:
        try:
            answers.update(await _ask_once(client, left, ask, type_))
        except KafkaError as error:
            if not error.retriable or isinstance(error, Closed):
                raise
            answers.update(dict.fromkeys(left, error))
        left = [key for key in left if _is_retriable(answers[key])]
        failures += 1
        wait_s = delay_s(BACKOFF, failures, client.randomness)
        if not left or client.io.now() + wait_s > deadline:
            break
        await sleep(client.io, wait_s)
    return answers


def _is_retriable(answer: object) -> bool:
    return isinstance(answer, KafkaError) and answer.retriable


async def _ask_once(
    client: FlowClient,
    keys: list[str],
    ask: Callable[[BrokerMetadata, list[str]], Awaitable[dict[str, T | KafkaError]]],
    type_: CoordinatorType,
) -> dict[str, T | KafkaError]:
    await client.ensure_known()
    answers: dict[str, T | KafkaError] = {}
    by_node: dict[BrokerMetadata, list[str]] = {}
    for key, found in (await find_coordinators(client, keys, type_)).items():
        if isinstance(found, KafkaError):
            answers[key] = found
        else:
            client.cluster.learn_broker(found)
            by_node.setdefault(client.cluster.brokers[found.node_id], []).append(key)

    async def ask_node(broker: BrokerMetadata, asked: list[str]) -> dict[str, T | KafkaError]:
        missing = TimedOut(f"node {broker.node_id} left a {type_.noun} out of its answer")
        try:
            return dict.fromkeys(asked, missing) | await ask(broker, asked)
        except KafkaError as error:
            if isinstance(error, Closed):
                raise
            return dict.fromkeys(asked, error)

    for part in await gather(client.io, [ask_node(broker, asked) for broker, asked in by_node.items()]):
        answers.update(part)
    return answers
