"""The log dir of each replica of this broker, reported to the active controller (AssignReplicasToDirs, KIP-858).

The controller moves the leaders of a log dir that fails, and can do so only for replicas that it knows to be there. A
broker with one log dir has nothing to report: the controller knows that one. With several, each replica is reported
once its log is open, and also if the log dir failed meanwhile: the controller takes a replica in a log dir that is
offline out of the ISR. So the order in which it learns of the failure and of the replica does not matter.

Always true: one request is in flight at a time; a replica is reported again until the controller has accepted it or the
metadata has it no more on this broker; of two log dirs that wait to be reported for a replica the newer counts.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from strandline.controller.brokers import DIRECTORIES_FROM
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.metadata.features import METADATA_VERSION
from strandline.metadata.image import MetadataImage, TopicImage
from strandline.node.controller_channel import ControllerChannel
from strandline.node.decision_queue import DecisionQueue, Place
from strandline.node.log_dirs import directory_of
from strandline.node.logger import Logger
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

ASSIGN_REPLICAS_TO_DIRS: Final = 73
ASSIGNED_AT_ONCE_MAX = 2250
"""In one request, as in Kafka."""
GATHERING_S = 0.1
"""Logs are opened many at a time: so long the first waits for the others."""


class DirAssignments(DecisionQueue[Uuid, "AssignReplicasToDirsResponse"]):
    api_key, purpose, content = ASSIGN_REPLICAS_TO_DIRS, "directory-assignments", "log dirs of replicas"
    backoff_min_s, backoff_max_s = 2 * GATHERING_S, 10.0

    def __init__(
        self,
        channel: ControllerChannel,
        broker_id: int,
        broker_epoch: Callable[[], int],
        image: Callable[[], MetadataImage],
        randomness: random.Random,
        logger: Logger,
        on_task_ended: Callable[[asyncio.Task[None]], None],
    ) -> None:
        """`image` is the newest committed metadata."""
        super().__init__(channel, broker_id, broker_epoch, randomness, logger, on_task_ended)
        self._image = image
        self._waiting: dict[Place, Uuid] = {}

    def is_in(self, directory_id: Uuid, topic: TopicImage, index: int) -> None:
        """The replica's log is in this log dir, online or not: report it to the controller, unless the metadata says so
        already."""
        if directory_of(topic.partitions[index], self._broker_id) == directory_id:
            self._waiting.pop((topic.topic_id, index), None)
            return
        self._waiting[topic.topic_id, index] = directory_id
        self._start()

    @property
    def waiting_count(self) -> int:
        """Replicas of which the controller does not know yet where they are."""
        return len(self._waiting)

    def _has_waiting(self) -> bool:
        return bool(self._waiting)

    def _pause_s(self, failures: int) -> float:
        if failures:
            return super()._pause_s(failures)
        return GATHERING_S if len(self._waiting) <= ASSIGNED_AT_ONCE_MAX else 0.0

    def _take(self) -> dict[Place, Uuid]:
        """The oldest that the metadata still has on this broker. What it does not is forgotten."""
        image = self._image()
        if image.features.get(METADATA_VERSION, 0) < DIRECTORIES_FROM:
            self._waiting.clear()  # such a cluster keeps no log dirs
        for place in [place for place in self._waiting if not _is_here(image, self._broker_id, *place)]:
            del self._waiting[place]
        return dict(islice(self._waiting.items(), ASSIGNED_AT_ONCE_MAX))

    def _request(self, asked: Mapping[Place, Uuid]) -> AssignReplicasToDirsRequest:
        return request(self._broker_id, self._broker_epoch(), asked)

    def _settle(self, asked: Mapping[Place, Uuid], response: AssignReplicasToDirsResponse | None) -> bool:
        taken = set() if response is None else taken_in(response)
        for place in taken & asked.keys():
            if self._waiting.get(place) == asked[place]:  # another log dir may have come meanwhile
                del self._waiting[place]
        return asked.keys() <= taken


def _is_here(image: MetadataImage, broker_id: int, topic_id: Uuid, index: int) -> bool:
    topic = image.topics_by_id.get(topic_id)
    return topic is not None and index < len(topic.partitions) and broker_id in topic.partitions[index].replicas


def request(broker_id: int, broker_epoch: int, assigned: Mapping[Place, Uuid]) -> AssignReplicasToDirsRequest:
    kind = messages.request(ASSIGN_REPLICAS_TO_DIRS)
    directories: dict[Uuid, AssignReplicasToDirsRequest.DirectoryData] = {}
    topics: dict[tuple[Uuid, Uuid], AssignReplicasToDirsRequest.TopicData] = {}
    for (topic_id, index), directory_id in assigned.items():
        directory = directories.setdefault(directory_id, kind.DirectoryData(id=directory_id))
        topic = topics.get((directory_id, topic_id))
        if topic is None:
            topic = topics[directory_id, topic_id] = kind.TopicData(topic_id=topic_id)
            directory.topics.append(topic)
        topic.partitions.append(kind.PartitionData(partition_index=index))
    return kind(broker_id=broker_id, broker_epoch=broker_epoch, directories=list(directories.values()))


def taken_in(response: AssignReplicasToDirsResponse) -> set[Place]:
    places: Iterable[tuple[Place, int]] = (
        ((Uuid(topic.topic_id), partition.partition_index), partition.error_code)
        for directory in response.directories
        for topic in directory.topics
        for partition in topic.partitions
    )
    return {place for place, code in places if code == ErrorCode.NONE}
