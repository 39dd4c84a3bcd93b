"""A coordinator of a node: it finds the shard that a request is for, by what it is about (a group, a transactional id).

Always true: there is a runner for exactly those partitions of the coordinator's topic that this node leads and can
write, one for each leader epoch (TXN-TF4); what belongs to any other partition gets NOT_COORDINATOR (C10, E3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from strandline.api.access.groups import NotedQuestion
from strandline.api.groups.placement import partition_of
from strandline.coordinator.result import Moment
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import MetadataImage
from strandline.node.coordinator.runner import Operation, Refuse, RunnerDependencies, ShardRunner
from strandline.node.coordinator.shard_spec import S, ShardSpec
from strandline.node.coordinator.topic import CoordinatorTopic
from strandline.replica.partition import Partition

T = TypeVar("T")


class NodeCoordinator(Generic[S]):
    def __init__(self, spec: ShardSpec[S], dependencies: RunnerDependencies, topic: CoordinatorTopic) -> None:
        self._spec = spec
        self._dependencies = dependencies
        self._topic = topic
        self._image = MetadataImage()
        self._runners: dict[int, ShardRunner[S]] = {}
        self._is_closed = False

    # Changes that the node reports

    def role(self, partition: Partition) -> None:
        """A partition has another leader, or another leader epoch, or is no longer here."""
        if partition.topic == self._spec.topic:
            self._role(partition)

    def _role(self, partition: Partition) -> None:
        runner = self._runners.get(partition.index)
        is_led = partition.leads and not partition.offline and not partition.gone and not self._is_closed
        if runner is not None:
            same = runner.partition is partition
            if is_led and same and runner.leader_epoch == partition.leader_epoch:
                return
            if not is_led and not same:
                return  # one that was deleted and made anew
            del self._runners[partition.index]
            runner.stop()
        if is_led:
            self._runners[partition.index] = ShardRunner(partition, self._spec, self._dependencies, self._ahead_of_log)

    def _ahead_of_log(self, runner: ShardRunner[S]) -> None:
        """What a runner has replayed could not be written: the log has the last word."""
        runner.stop()
        if self._runners.get(runner.partition.index) is runner:
            del self._runners[runner.partition.index]
            self._role(runner.partition)

    def image_applied(self, image: MetadataImage) -> None:
        """The node has acted on a newer image."""
        before, self._image = self._image, image
        if before.topics is image.topics and before.brokers is image.brokers:
            return
        gone = before.topics_by_id.keys() - image.topics_by_id.keys()
        deleted = frozenset((before.topics_by_id[topic_id].name, topic_id) for topic_id in gone)
        for runner in tuple(self._runners.values()):
            runner.metadata_changed(image, deleted)

    def close(self) -> None:
        """No request is served any more; waiting ones are answered with NOT_COORDINATOR."""
        self._is_closed = True
        runners, self._runners = self._runners, {}
        for runner in runners.values():
            runner.stop()

    # What the APIs ask

    def create_topic(self) -> None:
        """Have the topic created, unless that is under way."""
        self._topic.create()

    def _runner_of(self, key: str) -> ShardRunner[S] | None:
        topic = self._dependencies.image().topics.get(self._spec.topic)
        return None if topic is None else self._runners.get(partition_of(key, len(topic.partitions)))

    def write(self, key: str, operation: Operation[S], refuse: Refuse) -> None:
        runner = self._runner_of(key)
        if runner is None:
            refuse(KafkaError(ErrorCode.NOT_COORDINATOR))
        else:
            runner.write(operation, refuse)

    def read(self, key: str, operation: Callable[[S, Moment], T], answer: Callable[[T], None], refuse: Refuse) -> None:
        runner = self._runner_of(key)
        if runner is None:
            refuse(KafkaError(ErrorCode.NOT_COORDINATOR))
        else:
            runner.read(operation, answer, refuse)

    def note_question(self, key: str, producer: tuple[int, int], *, bumps_epoch: bool) -> NotedQuestion:
        runner = self._runner_of(key)
        if runner is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        partition = runner.partition
        guard = runner.note_question(producer, bumps_epoch=bumps_epoch)
        return NotedQuestion((partition.topic, partition.index), guard)

    def write_marker(
        self,
        partition_index: int,
        producer: tuple[int, int],
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        done: Callable[[ErrorCode], None],
    ) -> None:
        runner = self._runners.get(partition_index)
        if runner is None:
            done(ErrorCode.NOT_COORDINATOR)
        else:
            runner.write_marker(producer, commit, coordinator_epoch, transaction_version, done)

    def read_all(
        self,
        operation: Callable[[S, Moment], list[T]],
        answer: Callable[[list[T]], None],
        refuse: Refuse,
    ) -> None:
        """From every shard; `refuse` if one of them is not loaded or can't be read.
        A shard that is lost meanwhile has nothing.
        """
        found: list[T] = []
        left = dict.fromkeys(self._runners.values())
        if not left:
            answer(found)

        def settle(runner: ShardRunner[S], more: list[T] | KafkaError) -> None:
            if runner not in left:
                return
            del left[runner]
            if isinstance(more, list):
                found.extend(more)
            elif more.code is not ErrorCode.NOT_COORDINATOR:
                left.clear()
                refuse(more)
                return
            if not left:
                answer(found)

        for runner in tuple(left):
            runner.read(
                operation,
                lambda more, runner=runner: settle(runner, more),  # type: ignore[misc]
                lambda error, runner=runner: settle(runner, error),  # type: ignore[misc]
            )

    # What can be seen

    @property
    def runners(self) -> Mapping[int, ShardRunner[S]]:
        """By partition of the topic, of those that this node leads."""
        return self._runners

    @property
    def loading(self) -> int:
        """Partitions that are led here and not read back yet."""
        return sum(runner.shard is None for runner in self._runners.values())

    def shards(self) -> Iterator[S]:
        return (runner.shard for runner in self._runners.values() if runner.shard is not None)
