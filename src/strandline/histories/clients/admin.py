"""A client that makes and deletes topics and alters their configs through any broker, and records every answer.

Always true: each attempt is one request to one broker, never repeated by the client beneath; so what an error means for
it is known here: nothing was done, or the outcome is unknown. A broker may ask the active controller more than once, as
Kafka's do: then a topic may exist already, or be unknown already, at the first answer.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final, TypeVar

from strandline.client.aio import AsyncClient
from strandline.errors import ErrorCode, KafkaError
from strandline.histories.administered_topic import CONFIG_KEY, AdministeredTopic
from strandline.histories.clients.connecting import REQUEST_TIMEOUT_MS, connect
from strandline.ids import Uuid
from strandline.sim.world import SimNode
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.histories.load import Load
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

R = TypeVar("R", bound="ApiResponse")

CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
INCREMENTAL_ALTER_CONFIGS: Final = 44
TOPIC_RESOURCE, SET = 2, 0
PAUSE_S, BRISK_PAUSE_S = (4.0, 15.0), (0.5, 4.0)
TOPICS_MAX = 4
"""At a time."""
ATTEMPTS_MAX = 200

UNKNOWN = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_CONTROLLER,
    }
)
"""It may have been done all the same."""
REFUSED = frozenset(
    {
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.INVALID_REPLICATION_FACTOR,
    }
)
"""Not now: nothing was done."""


class AdminClient:
    def __init__(self, load: Load, machine: SimNode) -> None:
        self._load = load
        self._machine = machine
        self._chance = random.Random(f"{machine.world.seed}/{machine.name}")
        self._brokers = len(load.cluster.shape.brokers)
        self._mine: list[AdministeredTopic] = []
        self._number = 0
        self._is_answered_by_the_deposed = False
        self._client: AsyncClient

    async def run(self) -> None:
        async with connect(self._machine, self._load.cluster.shape) as self._client:
            while not self._load.is_stopping:
                await self._act()
                await self._load.rest(self._chance.uniform(*(BRISK_PAUSE_S if self._load.is_brisk else PAUSE_S)))

    async def _act(self) -> None:
        present = [topic for topic in self._mine if topic.present]
        choice = self._chance.random()
        if not present or (len(present) < TOPICS_MAX and choice < 0.45):
            await self._create()
        elif choice < 0.75:
            await self._alter(self._chance.choice(present))
        else:
            await self._delete(self._chance.choice(present))

    # Each until it is acknowledged

    async def _create(self) -> None:
        self._number += 1
        topic = AdministeredTopic(f"{self._machine.name}-{self._number}")
        self._mine.append(topic)
        self._load.topics[topic.name] = topic
        Create = messages.request(CREATE_TOPICS)
        wanted = Create.CreatableTopic(
            name=topic.name,
            num_partitions=self._chance.choice((1, 1, 2)),
            replication_factor=self._chance.choice((1, min(2, self._brokers))),
            assignments=[],
            configs=[],
        )
        message = Create(topics=[wanted], timeout_ms=REQUEST_TIMEOUT_MS, validate_only=False)
        for _ in range(ATTEMPTS_MAX):
            answer = await self._attempt(CREATE_TOPICS, message)
            code = ErrorCode.NETWORK_EXCEPTION if answer is None else answer.topics[0].error_code
            if code == ErrorCode.NONE and answer is not None:
                topic.present = True
                topic.topic_id = Uuid(answer.topics[0].topic_id)
                self._acknowledged("creates", topic)
                return
            if code == ErrorCode.TOPIC_ALREADY_EXISTS:
                topic.present = topic.maybe_created = True  # the broker asked more than once
                self._acknowledged("has made before", topic)
                return
            if self._is_unknown(code):
                topic.maybe_created |= answer is not None or self._sent
            elif code not in REFUSED:
                self._problem(f"creating {topic.name}: {ErrorCode(code).name}")
                return
            if not await self._again():
                return

    async def _delete(self, topic: AdministeredTopic) -> None:
        Delete = messages.request(DELETE_TOPICS)
        message = Delete(
            topics=[Delete.DeleteTopicState(name=topic.name)],
            topic_names=[topic.name],
            timeout_ms=REQUEST_TIMEOUT_MS,
        )
        for _ in range(ATTEMPTS_MAX):
            answer = await self._attempt(DELETE_TOPICS, message)
            code = ErrorCode.NETWORK_EXCEPTION if answer is None else answer.responses[0].error_code
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._is_answered_by_the_deposed:
                code = ErrorCode.NOT_CONTROLLER
            if code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                topic.present = False  # if it is unknown: the broker asked more than once
                topic.maybe_values.clear()
                self._acknowledged("deletes", topic)
                return
            if self._is_unknown(code):
                topic.maybe_deleted |= answer is not None or self._sent
            elif code not in REFUSED:
                self._problem(f"deleting {topic.name}: {ErrorCode(code).name}")
                return
            if not await self._again():
                return

    async def _alter(self, topic: AdministeredTopic) -> None:
        value = str(self._chance.randrange(10**6, 10**9))
        Alter = messages.request(INCREMENTAL_ALTER_CONFIGS)
        resource = Alter.AlterConfigsResource(
            resource_type=TOPIC_RESOURCE,
            resource_name=topic.name,
            configs=[Alter.AlterableConfig(name=CONFIG_KEY, config_operation=SET, value=value)],
        )
        message = Alter(resources=[resource], validate_only=False)
        for _ in range(ATTEMPTS_MAX):
            answer = await self._attempt(INCREMENTAL_ALTER_CONFIGS, message)
            code = ErrorCode.NETWORK_EXCEPTION if answer is None else answer.responses[0].error_code
            if code == ErrorCode.NONE:
                topic.value = value
                self._acknowledged(f"sets {value} of", topic)
                return
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                if topic.is_surely_present and not self._is_answered_by_the_deposed:
                    self._problem(f"lost: {topic} is said to be unknown")
                    topic.present = False
                return
            if self._is_unknown(code):
                if answer is not None or self._sent:
                    topic.maybe_values.add(value)
            elif code not in REFUSED:
                self._problem(f"altering {topic.name}: {ErrorCode(code).name}")
                return
            if not await self._again():
                return

    # One request

    async def _attempt(self, api_key: int, message: ApiRequest[R]) -> R | None:
        """The answer, or None if there was none; then `_sent` says whether the request may have arrived."""
        self._sent = False
        self._load.operations += 1
        self._is_answered_by_the_deposed = self._claimants() > 1
        try:
            await self._client.ensure_known()
            broker_ids = list(self._client.cluster.brokers)
            channel = await self._client.channel(self._chance.choice(broker_ids)) if broker_ids else None
            if channel is None:
                return None
            self._sent = True
            answer: R = await channel.send(api_key, message, REQUEST_TIMEOUT_MS / 1000)
            self._is_answered_by_the_deposed |= self._claimants() > 1
            return answer
        except KafkaError as error:
            self._load.note_error(error)
            if error.code not in UNKNOWN | REFUSED:
                self._problem(f"API {api_key}: {error!r}")
            return None

    def _claimants(self) -> int:
        """Who takes itself for the active controller. One that stood still does not know yet that there is another,
        and answers what changes nothing from what it knows, as Kafka's does: that there is no such topic, for one."""
        looks = [member.look() for member in self._load.cluster.members.values()]
        return sum(seen.leads for seen in looks if seen is not None)

    async def _again(self) -> bool:
        """Wait before the next attempt. Who is stopping tries no further; the cluster may not be well."""
        await asyncio.sleep(self._chance.uniform(0.1, 1.0))
        try:
            await self._client.refresh()
        except KafkaError:
            pass
        return not self._load.is_stopping

    def _is_unknown(self, code: int) -> bool:
        return code in UNKNOWN

    def _acknowledged(self, did: str, topic: AdministeredTopic) -> None:
        self._load.cluster.transcript.note(self._machine.name, f"{did} {topic.name}")

    def _problem(self, what: str) -> None:
        self._load.problem("administration", f"{self._machine.name}: {what}")
