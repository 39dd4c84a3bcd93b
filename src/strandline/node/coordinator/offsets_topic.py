"""`__consumer_offsets`, created when a client first asks for a coordinator.

Always true: one request for it is under way at a time; if it fails, the next one who asks for a coordinator tries
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from strandline.config.node import NodeConfig
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.node.logger import Logger
from strandline.node.tasks import AsyncWork
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.create_topics import CreateTopicsRequest, CreateTopicsResponse

CONSUMER_OFFSETS = "__consumer_offsets"
CREATE_TOPICS: Final = 19
CREATED_WITHIN_MS = 5_000


class OffsetsTopic:
    def __init__(
        self,
        config: Callable[[], NodeConfig],
        ask_controller: Callable[[int, CreateTopicsRequest], Awaitable[CreateTopicsResponse]],
        spawn: Callable[[AsyncWork[None]], None],
        logger: Logger,
    ) -> None:
        self._config = config
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
                "could not create the offsets topic, without which there are no groups", error=code.name, reason=message
            )
        self._logged_error = code

    def _request(self) -> CreateTopicsRequest:
        config, create = self._config(), messages.request(CREATE_TOPICS)
        texts = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        }
        topic = create.CreatableTopic(
            name=CONSUMER_OFFSETS,
            num_partitions=config.offsets_topic_num_partitions,
            replication_factor=config.offsets_topic_replication_factor,
            configs=[create.CreatableTopicConfig(name=name, value=value) for name, value in texts.items()],
        )
        return create(topics=[topic], timeout_ms=CREATED_WITHIN_MS)
