"""The partitions that this node hosts: opened, created, deleted and flushed as the metadata says.

Always true: what is hosted, and in which role, follows the newest committed image. A log dir that fails goes offline
alone, with all its partitions (`log_dir_failure.py`).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from strandline.config.dynamic import DynamicConfig
from strandline.config.node import NodeConfig
from strandline.config.topic_config import TopicConfig
from strandline.ids import TopicPartition, Uuid
from strandline.log import names
from strandline.log.log import Log
from strandline.log.recovery import RecoveredLog
from strandline.log.verification_guards import NodeGuards
from strandline.metadata.image import TOPIC_RESOURCE, MetadataImage, TopicImage
from strandline.node.log_dir_failure import LogDirFailureHandler
from strandline.node.log_dirs import LogDir, mark_clean
from strandline.node.log_effects import perform
from strandline.node.log_loading import LogLoading, PlacedLog
from strandline.node.logger import Logger
from strandline.node.offset_checkpoints import OffsetCheckpoints
from strandline.node.partition_dependencies import NodePartitionDependencies, Note
from strandline.node.signals import ReplicaSignals
from strandline.ports import Clock, Disk, is_out_of_handles
from strandline.replica.isr_state import ProposedIsr
from strandline.replica.partition import Partition
from strandline.replica.topic_stats import BrokerTopicStats

OPENED_AT_ONCE_MAX = 100
"""Logs in one piece of work: handles are taken back only between two of them, and each log has several."""
OUT_OF_HANDLES_RETRY_S = 0.1


@dataclass(slots=True)
class _Hosted:
    partition: Partition
    log_dir: LogDir


class Replicas:
    def __init__(
        self,
        dynamic_config: DynamicConfig,
        disk: Disk,
        clock: Clock,
        randomness: random.Random,
        logger: Logger,
        log_dirs: list[LogDir],
        signals: ReplicaSignals,
        *,
        broker_epoch: Callable[[], int],
        propose_isr: Callable[[Partition, ProposedIsr], None],
        note: Note,
        on_all_dirs_failed: Callable[[str], None],
        on_task_ended: Callable[[asyncio.Task[None]], None],
    ) -> None:
        """`broker_epoch`, `propose_isr` and `note` (of an event) are for the partitions, which have them from here."""
        config = dynamic_config.current
        self.dynamic_config = dynamic_config
        self.partitions: dict[TopicPartition, Partition] = {}
        self.partitions_by_id: dict[tuple[bytes, int], Partition] = {}
        self.topic_stats = BrokerTopicStats()
        self._guards = NodeGuards()
        self.unopened: dict[TopicPartition, Uuid] = {}
        """Topic ids of those that belong here and can't be opened, because their log dir is offline."""
        self.log_dirs = log_dirs
        self.dependencies = NodePartitionDependencies(
            config.node_id,
            config.replica_lag_time_max_ms / 1000,
            broker_epoch=broker_epoch,
            propose_isr=propose_isr,
            flush_due=self.flush_due,
            truncated=signals.truncated,
            note=note,
        )
        self.signals = signals
        self._disk = disk
        self._clock = clock
        self._randomness = randomness
        self._logger = logger
        self._dir_failures = LogDirFailureHandler(
            log_dirs, self.in_dir, signals, clock, logger, on_all_failed=on_all_dirs_failed
        )
        self._on_task_ended = on_task_ended
        self._loading = LogLoading(config.node_id, disk, clock, randomness, logger, log_dirs)
        self._checkpoints = OffsetCheckpoints(disk)
        self._image = MetadataImage()
        self._hosted: dict[TopicPartition, _Hosted] = {}
        self._flushing: dict[Partition, asyncio.Task[None]] = {}
        self._doomed: list[tuple[float, str]] = []
        """Paths to remove, and from when on."""

    @property
    def config(self) -> NodeConfig:
        """The configuration that is in force now."""
        return self.dynamic_config.current

    # Following the metadata

    async def apply(self, image: MetadataImage, publish: Callable[[], None] = lambda: None) -> None:
        """Host what the image says. Logs that are new are opened first; then `publish` shows the image to clients in
        the same moment in which the partitions take their roles: a client that is refused by one of them finds out
        why."""
        before, self._image = self._image, image
        self.dependencies.use(image)
        if before.topics is not image.topics:
            changed = [topic for name, topic in image.topics.items() if before.topics.get(name) is not topic]
            gone = self._gone(before, image, changed)
            if gone:
                await self._drop(gone)
            self._forget_unopened(image)
            if wanted := [(topic, index) for topic in changed for index in self._local(topic)]:
                await self._open(wanted, at_start=not before.end_offset)
            publish()
            self._take_roles(changed)
        if before.configs is not image.configs:
            self._reconfigure(before, image)
        if before.brokers is not image.brokers:
            for partition in self.partitions.values():
                partition.brokers_changed()

    def _gone(self, before: MetadataImage, image: MetadataImage, changed: list[TopicImage]) -> list[TopicPartition]:
        """Partitions that are open here and belong here no more: deleted, made anew under the same name, or moved."""
        deleted = [
            (topic.name, index)
            for topic_id, topic in before.topics_by_id.items()
            if topic_id not in image.topics_by_id
            for index in range(len(topic.partitions))
        ]
        node_id = self.config.node_id
        moved = [
            (topic.name, index)
            for topic in changed
            for index, state in enumerate(topic.partitions)
            if node_id not in state.replicas
        ]
        return [key for key in dict.fromkeys((*deleted, *moved)) if key in self._hosted]

    def _forget_unopened(self, image: MetadataImage) -> None:
        """Those that were deleted, or moved to other brokers."""
        for (name, index), topic_id in tuple(self.unopened.items()):
            topic = image.topics_by_id.get(topic_id)
            if topic is None or self.config.node_id not in topic.partitions[index].replicas:
                del self.unopened[name, index]

    def _take_roles(self, topics: list[TopicImage]) -> None:
        """Partitions that are open already learn what the controller decided about them."""
        for topic in topics:
            for index, state in enumerate(topic.partitions):
                partition = self.partitions.get((topic.name, index))
                if partition is not None and partition.apply(state):
                    self.signals.role_changed(partition)

    def _local(self, topic: TopicImage) -> list[int]:
        """The partitions of a topic that belong here and are not open yet."""
        node_id = self.config.node_id
        return [
            index
            for index, partition in enumerate(topic.partitions)
            if node_id in partition.replicas
            and (topic.name, index) not in self.partitions
            and (topic.name, index) not in self.unopened
        ]

    def topic_config(self, image: MetadataImage, topic: str) -> TopicConfig:
        overrides = image.config(TOPIC_RESOURCE, topic)
        return TopicConfig.build(self.config.layers, overrides) if overrides else self.config.topic_defaults

    def _reconfigure(self, before: MetadataImage, image: MetadataImage) -> None:
        for (name, _), partition in self.partitions.items():
            if before.config(TOPIC_RESOURCE, name) != image.config(TOPIC_RESOURCE, name):
                partition.log.config = self.topic_config(image, name)

    def config_changed(self) -> None:
        """Broker-wide defaults changed: every topic without an override of its own gets the new ones."""
        for (name, _), partition in self.partitions.items():
            partition.log.config = self.topic_config(self._image, name)

    async def _open(self, wanted: list[tuple[TopicImage, int]], *, at_start: bool) -> None:
        while wanted:
            hosted = [hosted.log_dir for hosted in self._hosted.values()]
            places, lost = self._loading.place(wanted, hosted, at_start=at_start)
            for topic, index in lost:
                self.unopened[topic.name, index] = topic.topic_id
            # A new log whose log dir failed just then is made in another one.
            wanted = await self._open_in(places)

    async def _open_in(self, places: list[PlacedLog]) -> list[tuple[TopicImage, int]]:
        """Open logs; those that need another place."""
        homeless = []
        left, at_once = places, OPENED_AT_ONCE_MAX
        while left:
            piece, left = left[:at_once], left[at_once:]
            some = [place for place in piece if place.log_dir.online]
            failed = [place for place in piece if not place.log_dir.online]
            again: list[PlacedLog] = []
            configs = [self.topic_config(self._image, place.topic.name) for place in some]
            opened = await self._disk.offload(partial(self._loading.load_all, some, configs), "")
            for place, result in zip(some, opened, strict=True):
                if isinstance(result, OSError):
                    self.dir_failed(place.log_dir, result)
                    (again if is_out_of_handles(result) else failed).append(place)
                else:
                    result.log.producers.ids_max = self.config.producer_id_max_per_partition
                    result.log.guards.of_node = self._guards
                    self._host(place, result)
            for place in failed:
                if place.known:
                    self.unopened[place.key] = place.topic.topic_id
                    self.signals.unopened(place.topic, place.partition, place.log_dir)
                else:
                    homeless.append((place.topic, place.partition))
            if again:
                # Handles are taken back between two pieces: smaller ones get through.
                left, at_once = again + left, max(at_once // 2, 1)
                await asyncio.sleep(OUT_OF_HANDLES_RETRY_S)
        return homeless

    def _host(self, place: PlacedLog, recovered: RecoveredLog) -> None:
        topic, index, log_dir, log = place.topic, place.partition, place.log_dir, recovered.log
        state = topic.partitions[index]
        partition = Partition(
            topic.name,
            index,
            topic.topic_id,
            log,
            state,
            self.dependencies,
            high_watermark=place.high_watermark,
            stats=self.topic_stats[topic.name],
        )
        partition.offline = not log_dir.online
        key = place.key
        self.partitions[key] = partition
        self.partitions_by_id[topic.topic_id, index] = partition
        self._hosted[key] = _Hosted(partition, log_dir)
        if recovered.truncated_bytes:
            self._logger.warning(
                "log cut at its first bad batch",
                partition=str(partition),
                truncated_bytes=recovered.truncated_bytes,
                log_end_offset=log.log_end_offset,
            )
        if recovered.rebuilt_indexes:
            self._logger.warning("indexes rebuilt", partition=str(partition), segments=recovered.rebuilt_indexes)
        self.signals.hosted(partition, log_dir)
        for damaged in recovered.damaged:
            self.signals.damaged(partition, damaged)
        self.signals.role_changed(partition)

    def find(self, image: MetadataImage) -> list[tuple[LogDir, OSError]]:
        """See what the log dirs hold before the first image is applied; those that failed at that. Blocks."""
        return self._loading.find(image)

    # Deleting

    async def _drop(self, keys: list[TopicPartition]) -> None:
        dropped = []
        for key in keys:
            hosted = self._hosted.pop(key)
            partition = self.partitions.pop(key)
            self.partitions_by_id.pop((partition.topic_id, partition.index))
            partition.drop()
            self.signals.role_changed(partition)
            dropped.append(hosted)
        for topic in {key[0] for key in keys} - {key[0] for key in self.partitions}:
            self.topic_stats.forget(topic)
        # A flush that is under way knows its directory by name: it ends before another log can have that name.
        if flushing := [self._flushing[h.partition] for h in dropped if h.partition in self._flushing]:
            await asyncio.wait(flushing)
        await self.signals.dropping([hosted.partition for hosted in dropped])
        for hosted in dropped:
            if hosted.log_dir.online:
                self._doom(hosted.partition, hosted.log_dir)
        # Nor may a topic of the same name inherit how far this one was.
        for log_dir in {id(hosted.log_dir): hosted.log_dir for hosted in dropped}.values():
            await self.checkpoint(log_dir)

    def _doom(self, partition: Partition, log_dir: LogDir) -> None:
        log = partition.log
        name = names.doomed_dir(partition.topic, partition.index, self._randomness.randbytes(16))
        path = f"{log_dir.path}/{name}"
        try:
            log.close()
            self._disk.rename(log.directory, path)
        except OSError as error:
            self.dir_failed(log_dir, error)
            return
        self.remove_later(path, log.config.file_delete_delay_ms)

    def remove_later(self, path: str, delay_ms: int) -> None:
        self._doomed.append((self._clock.monotonic() + delay_ms / 1000, path))

    def has_doomed(self) -> bool:
        return bool(self._doomed)

    async def remove_doomed(self) -> None:
        """Remove what was marked for deletion long enough ago."""
        now = self._clock.monotonic()
        due = [path for when, path in self._doomed if when <= now]
        if due:
            self._doomed = [(when, path) for when, path in self._doomed if when > now]
            await self._disk.offload(partial(self._remove, due), "")

    def _remove(self, paths: list[str]) -> None:
        for path in paths:
            try:
                self._disk.remove_tree(path)
            except OSError as error:
                # It has a name that the next start removes.
                self._logger.warning("could not remove a deleted log", path=path, error=str(error))

    # Flushing

    def flush_due(self, partition: Partition) -> None:
        """Bring the partition's log to the device; appends that come meanwhile share the next flush."""
        if partition not in self._flushing:
            task = asyncio.get_running_loop().create_task(self._flush(partition))
            task.add_done_callback(self._on_task_ended)
            self._flushing[partition] = task

    async def _flush(self, partition: Partition) -> None:
        try:
            while not partition.offline and not partition.gone:
                await perform(partition.log.flush())
                if not partition.after_flush(self._clock.monotonic()):
                    break
        except OSError as error:
            self.storage_error(partition, error)
        finally:
            self._flushing.pop(partition, None)

    # Failing

    def storage_error(self, partition: Partition, error: OSError) -> None:
        hosted = self._hosted.get((partition.topic, partition.index))
        if hosted is not None and hosted.partition is partition and not partition.gone:
            self.dir_failed(hosted.log_dir, error)

    def dir_failed(self, log_dir: LogDir, error: OSError) -> None:
        self._dir_failures.failed(log_dir, error)

    # Looking

    @property
    def image(self) -> MetadataImage:
        """The image that is applied here."""
        return self._image

    def in_dir(self, log_dir: LogDir) -> Iterable[Partition]:
        return (hosted.partition for hosted in self._hosted.values() if hosted.log_dir is log_dir)

    def online(self) -> list[tuple[Partition, LogDir]]:
        return [(hosted.partition, hosted.log_dir) for hosted in self._hosted.values() if hosted.log_dir.online]

    # Leaving

    async def close(self, broker_epoch: int) -> None:
        """Everything on the device, and word left that it is."""
        if self._flushing:
            await asyncio.wait(list(self._flushing.values()))
        for log_dir in self.log_dirs:
            if log_dir.online:
                logs = [partition.log for partition in self.in_dir(log_dir)]
                try:
                    await self._disk.offload(partial(self._close_logs, logs), log_dir.path)
                    await self.checkpoint(log_dir)
                    if log_dir.online:
                        await self._disk.offload(partial(mark_clean, self._disk, log_dir, broker_epoch), log_dir.path)
                except OSError as error:
                    self.dir_failed(log_dir, error)

    @staticmethod
    def _close_logs(logs: list[Log]) -> None:
        for log in logs:
            log.close_clean()

    # Checkpoints

    async def checkpoint(self, log_dir: LogDir) -> None:
        """Write down how far each replica is written, read and flushed."""
        if log_dir.online:
            try:
                await self._checkpoints.write(log_dir.path, self.in_dir(log_dir))
            except OSError as error:
                self.dir_failed(log_dir, error)


def directory_ids(log_dirs: Iterable[LogDir]) -> tuple[Uuid, ...]:
    return tuple(sorted(log_dir.directory_id for log_dir in log_dirs if log_dir.online))
