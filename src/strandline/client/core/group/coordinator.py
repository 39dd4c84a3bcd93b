"""Which broker coordinates a group or a transactional id: FindCoordinator (10).

Always true: a coordinator that did not answer, or said that it is none, is forgotten at once; one question follows
another only after a wait that grows, but stays short, because members want to be back before their sessions end.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from strandline.client.core.backoff import Backoff, delay_s
from strandline.client.core.cluster_metadata import BrokerMetadata, ClusterMetadata
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

FIND_COORDINATOR: Final = 10
BACKOFF = Backoff(50, 200)
GONE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Answers after which the coordinator is to be found again."""


class CoordinatorType(enum.IntEnum):
    """What is coordinated: Kafka's types of keys."""

    GROUP = 0
    TRANSACTION = 1

    @property
    def noun(self) -> str:
        return "group" if self is CoordinatorType.GROUP else "transactional id"


class CoordinatorLookup:
    """Of the coordinator of one group or transactional id."""

    def __init__(
        self, group_id: str, randomness: random.Random, type_: CoordinatorType = CoordinatorType.GROUP
    ) -> None:
        self.group_id = group_id
        self.type = type_
        self.node_id: int | None = None
        self.retry_at = float("-inf")
        """No broker is asked before that."""
        self._failures = 0
        self._randomness = randomness

    def answered(self, response: FindCoordinatorResponse, cluster: ClusterMetadata, now: float) -> None:
        """A broker said who it is, or that there is none yet. KafkaError if asking again cannot help."""
        found = brokers(response, [self.group_id], self.type)[self.group_id]
        if isinstance(found, KafkaError):
            self.failed(now)
            if not found.retriable:
                raise found
        else:
            cluster.learn_broker(found)
            self.node_id = found.node_id

    def failed(self, now: float) -> None:
        """There was no answer, or whom it named does not answer."""
        self.node_id = None
        self._failures += 1
        self.retry_at = now + delay_s(BACKOFF, self._failures, self._randomness)

    def serves(self) -> None:
        """It gave an answer that only a coordinator gives."""
        self._failures = 0
        self.retry_at = float("-inf")

    def gone(self, node_id: int, now: float) -> None:
        """This node is it no more. The first time the next question may be put at once."""
        if node_id == self.node_id:
            self.node_id = None
            if self._failures:
                self.failed(now)
            else:
                self._failures = 1


def question(keys: Sequence[str], type_: CoordinatorType = CoordinatorType.GROUP) -> FindCoordinatorRequest:
    """Brokers before version 4 are asked for the first only."""
    return messages.request(FIND_COORDINATOR)(key_type=type_, coordinator_keys=list(keys), key=keys[0])


def brokers(
    response: FindCoordinatorResponse, keys: Sequence[str], type_: CoordinatorType = CoordinatorType.GROUP
) -> dict[str, BrokerMetadata | KafkaError]:
    """By key. Where a broker answered for the first only, the others are missing."""
    if not response.coordinators:
        return {keys[0]: _broker(response, keys[0], type_)}
    return {entry.key: _broker(entry, entry.key, type_) for entry in response.coordinators}


def _broker(
    entry: FindCoordinatorResponse | FindCoordinatorResponse.Coordinator, key: str, type_: CoordinatorType
) -> BrokerMetadata | KafkaError:
    code = error_code(entry.error_code)
    if code is not ErrorCode.NONE:
        return KafkaError(code, entry.error_message or f"no coordinator of {type_.noun} '{key}'")
    return BrokerMetadata(entry.node_id, entry.host, entry.port)
