"""The topic of a coordinator, created when a client first asks for that coordinator.

Always true: one request for it is under way at a time; if it fails, the next one who asks for a coordinator tries
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.node.logger import Logger
from strandline.node.tasks import AsyncWork
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.create_topics import CreateTopicsRequest, CreateTopicsResponse

CREATE_TOPICS: Final = 19
CREATED_WITHIN_MS = 5_000


class TopicSettings(NamedTuple):
    """What the topic is created with."""

    num_partitions: int
    replication_factor: int
    configs: Mapping[str, str]


class CoordinatorTopic:
    def __init__(
        self,
        name: str,
        settings: Callable[[], TopicSettings],
        ask_controller: Callable[[int, CreateTopicsRequest], Awaitable[CreateTopicsResponse]],
        spawn: Callable[[AsyncWork[None]], None],
        logger: Logger,
    ) -> None:
        self._name = name
        self._settings = settings
        self._ask_controller = ask_controller
        self._spawn = spawn
        self._logger = logger
        self._is_creating = False
        self._logged_error = ErrorCode.NONE
        """Why it could not be created, as last logged: clients ask ten times a second."""

    def create(self) -> None:
        if not self._is_creating:
            self._is_creating = True
            self._spawn(self._create())

    async def _create(self) -> None:
        try:
            async with asyncio.timeout(CREATED_WITHIN_MS / 1000):
                reply = await self._ask_controller(CREATE_TOPICS, self._request())
            code, message = error_code(reply.topics[0].error_code), reply.topics[0].error_message
        except KafkaError as error:
            code, message = error.code, error.message
        except TimeoutError:
            code, message = ErrorCode.REQUEST_TIMED_OUT, "the controller did not answer in time"
        finally:
            self._is_creating = False
        if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, self._logged_error):
            self._logger.warning(
                f"could not create {self._name}, without which there is no coordinator", error=code.name, reason=message
            )
        self._logged_error = code

    def _request(self) -> CreateTopicsRequest:
        settings, create = self._settings(), messages.request(CREATE_TOPICS)
        topic = create.CreatableTopic(
            name=self._name,
            num_partitions=settings.num_partitions,
            replication_factor=settings.replication_factor,
            configs=[create.CreatableTopicConfig(name=name, value=value) for name, value in settings.configs.items()],
        )
        return create(topics=[topic], timeout_ms=CREATED_WITHIN_MS)
