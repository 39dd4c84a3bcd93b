"""The partitions that this node hosts: opened, created, deleted and flushed as the metadata says.

Always true: what is hosted follows the newest committed image; a directory whose topic is gone is set aside, never read; a
log dir that fails goes offline alone, with all its partitions, and is not used again before a restart.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from strandline.config.node import NodeConfig
from strandline.config.topic_config import TopicConfig
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.log import checkpoints, names
from strandline.log.errors import CorruptLog
from strandline.log.log import Log
from strandline.log.recovery import Recovered, load
from strandline.metadata.image import TOPIC_RESOURCE, MetadataImage, TopicImage
from strandline.node.log_dirs import LogDir, mark_clean
from strandline.ports import Clock, Disk
from strandline.replica.partition import Partition

OPENED_AT_ONCE_MAX = 100
"""Logs in one piece of work: handles are taken back only between two of them, and each log has several."""
Logger = Any
"""A structlog logger; it belongs to its node."""


class _Place(NamedTuple):
    topic: TopicImage
    partition: int
    log_dir: LogDir
    known: bool
    """There is a log of this very topic; what the checkpoints say is about it."""


@dataclass(slots=True)
class _Hosted:
    partition: Partition
    log_dir: LogDir


class Replicas:
    def __init__(
        self,
        config: NodeConfig,
        disk: Disk,
        clock: Clock,
        randomness: random.Random,
        logger: Logger,
        log_dirs: list[LogDir],
        on_all_dirs_failed: Callable[[str], None],
        on_task_ended: Callable[[asyncio.Task[None]], None],
    ) -> None:
        self.config = config
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.partitions_by_id: dict[tuple[bytes, int], Partition] = {}
        self.log_dirs = log_dirs
        self._disk = disk
        self._clock = clock
        self._randomness = randomness
        self._logger = logger
        self._on_all_dirs_failed = on_all_dirs_failed
        self._on_task_ended = on_task_ended
        self.on_dir_failed: Callable[[LogDir], None] = lambda log_dir: None
        self._checkpointing = asyncio.Lock()
        """Two at once would write the same files."""
        self._image = MetadataImage()
        self._hosted: dict[tuple[str, int], _Hosted] = {}
        self._flushing: dict[Partition, asyncio.Task[None]] = {}
        self._found: dict[tuple[str, int], LogDir] = {}
        self._doomed: list[tuple[float, str]] = []
        """Paths to remove, and from when on."""

    # Following the metadata

    async def apply(self, image: MetadataImage) -> None:
        before, self._image = self._image, image
        if before.topics is not image.topics:
            changed = [topic for name, topic in image.topics.items() if before.topics.get(name) is not topic]
            gone = self._gone(before, image, changed)
            if gone:
                await self._drop(gone)
            if changed:
                self._follow(changed)
                if wanted := [(topic, index) for topic in changed for index in self._local(topic)]:
                    await self._open(wanted)
        if before.configs is not image.configs:
            self._reconfigure(before, image)

    def _gone(self, before: MetadataImage, image: MetadataImage, changed: list[TopicImage]) -> list[tuple[str, int]]:
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

    def _follow(self, topics: list[TopicImage]) -> None:
        """Partitions that are open already learn what the controller decided about them."""
        node_id = self.config.node_id
        for topic in topics:
            for index, state in enumerate(topic.partitions):
                partition = self.partitions.get((topic.name, index))
                if partition is None:
                    continue
                partition.is_held = state.isr != (node_id,)
                if state.leader == node_id:
                    partition.lead(state.leader_epoch, alone=state.isr == (node_id,))
                else:
                    partition.follow(state.leader_epoch)

    def _local(self, topic: TopicImage) -> list[int]:
        """The partitions of a topic that belong here and are not open yet."""
        node_id = self.config.node_id
        return [
            index
            for index, partition in enumerate(topic.partitions)
            if node_id in partition.replicas and (topic.name, index) not in self.partitions
        ]

    def topic_config(self, image: MetadataImage, topic: str) -> TopicConfig:
        overrides = image.config(TOPIC_RESOURCE, topic)
        return TopicConfig.build(self.config.layers, overrides) if overrides else self.config.topic_defaults

    def _reconfigure(self, before: MetadataImage, image: MetadataImage) -> None:
        for (name, _), partition in self.partitions.items():
            if before.config(TOPIC_RESOURCE, name) != image.config(TOPIC_RESOURCE, name):
                partition.log.config = self.topic_config(image, name)

    def use_config(self, config: NodeConfig) -> None:
        """Broker-wide defaults changed: every topic without an override of its own gets the new ones."""
        self.config = config
        for (name, _), partition in self.partitions.items():
            partition.log.config = self.topic_config(self._image, name)

    async def _open(self, wanted: list[tuple[TopicImage, int]]) -> None:
        places = self._place(wanted)
        for start in range(0, len(places), OPENED_AT_ONCE_MAX):
            some = places[start : start + OPENED_AT_ONCE_MAX]
            opened = await self._disk.offload(partial(self._load_all, some))
            for place, result in zip(some, opened, strict=True):
                if isinstance(result, OSError):
                    self._dir_failed(place.log_dir, result)
                else:
                    self._host(place.topic, place.partition, place.log_dir, result)

    def _load_all(self, places: list[_Place]) -> list[Recovered | OSError]:
        """Open or create logs; a new directory is on the device before anybody is told of it. Blocks."""
        opened = [self._load(place) for place in places]
        for path in dict.fromkeys(place.log_dir.path for place in places):
            try:
                self._disk.sync_dir(path)
            except OSError as error:
                opened = [
                    error if place.log_dir.path == path else one for place, one in zip(places, opened, strict=True)
                ]
        return opened

    def _load(self, place: _Place) -> Recovered | OSError:
        """Open or create one log. Blocks; runs beside the event loop."""
        topic, log_dir = place.topic, place.log_dir
        key = (topic.name, place.partition)
        assert topic.name != names.CLUSTER_METADATA_TOPIC, "the metadata log has a place of its own"
        directory = f"{log_dir.path}/{names.partition_dir(*key)}"
        try:
            recovered = load(
                self._disk,
                directory,
                self.topic_config(self._image, topic.name),
                clean=log_dir.clean and place.known,
                recovery_point=log_dir.recovery_points.get(key, 0) if place.known else 0,
                log_start_offset=log_dir.start_offsets.get(key, 0) if place.known else 0,
                now_ms=self._clock.wall_ms(),
            )
            metadata = f"{directory}/{checkpoints.PARTITION_METADATA}"
            if not self._disk.exists(metadata):
                file = self._disk.open(metadata, create=True)
                file.append(checkpoints.partition_metadata(str(topic.topic_id)))
                recovered.log.sync_with_names(file)
        except OSError as error:
            return error
        except CorruptLog as error:
            return OSError(str(error))
        return recovered

    def _host(self, topic: TopicImage, index: int, log_dir: LogDir, recovered: Recovered) -> None:
        state = topic.partitions[index]
        node_id = self.config.node_id
        partition = Partition(
            topic.name,
            index,
            topic.topic_id,
            recovered.log,
            state.leader_epoch,
            self.flush_due,
            leads=state.leader == node_id,
            alone=state.isr == (node_id,),
        )
        partition.offline = not log_dir.online
        partition.is_held = not partition.alone
        key = (topic.name, index)
        self.partitions[key] = partition
        self.partitions_by_id[topic.topic_id, index] = partition
        self._hosted[key] = _Hosted(partition, log_dir)
        if recovered.log.config.compact and not index:
            self._logger.warning("nothing is compacted yet: the cleaner is still to come", topic=topic.name)
        if recovered.truncated_bytes:
            self._logger.warning(
                "log cut at its first bad batch",
                partition=str(partition),
                truncated_bytes=recovered.truncated_bytes,
                log_end_offset=recovered.log.log_end_offset,
            )
        if recovered.rebuilt_indexes:
            self._logger.warning("indexes rebuilt", partition=str(partition), segments=recovered.rebuilt_indexes)

    def _place(self, wanted: list[tuple[TopicImage, int]]) -> list[_Place]:
        """Where each log is, or, for a new one, the online log dir with the fewest partitions so far."""
        counts = {id(log_dir): 0 for log_dir in self.log_dirs if log_dir.online}
        for hosted in self._hosted.values():
            if hosted.log_dir.online:
                counts[id(hosted.log_dir)] += 1
        online = [log_dir for log_dir in self.log_dirs if log_dir.online]
        places = []
        for topic, index in wanted:
            log_dir = self._found.pop((topic.name, index), None)
            known = log_dir is not None
            if log_dir is None:
                log_dir = min(online, key=lambda log_dir: counts[id(log_dir)])
            if log_dir.online:
                counts[id(log_dir)] += 1
                places.append(_Place(topic, index, log_dir, known))
        return places

    def find(self, image: MetadataImage) -> None:
        """See what the log dirs hold before the first image is applied: logs to open, and strays to set aside. Blocks."""
        for log_dir in self.log_dirs:
            for name in self._disk.listdir(log_dir.path):
                path = f"{log_dir.path}/{name}"
                if names.is_doomed_dir(name):
                    self._disk.remove_tree(path)
                    continue
                parsed = names.parse_partition_dir(name)
                if parsed is None or parsed[0] == names.CLUSTER_METADATA_TOPIC or not self._disk.is_dir(path):
                    continue
                reason = self._stray_reason(image, *parsed, path)
                if reason is None:
                    self._found[parsed] = log_dir
                else:
                    aside = f"{log_dir.path}/{names.stray_dir(name, self._randomness.randbytes(16))}"
                    self._disk.rename(path, aside)
                    self._logger.warning(
                        "set a directory aside that is not part of the cluster", path=aside, reason=reason
                    )

    def _stray_reason(self, image: MetadataImage, topic: str, index: int, path: str) -> str | None:
        if self._disk.is_link(path):
            return "it is a symbolic link"
        partition = image.partition(topic, index)
        if partition is None or self.config.node_id not in partition.replicas:
            return "the metadata has no such partition on this node"
        if (topic, index) in self._found:
            return f"{self._found[topic, index].path} has the partition too"
        try:
            topic_id = checkpoints.read_partition_metadata(self._disk, f"{path}/{checkpoints.PARTITION_METADATA}")
        except CorruptLog as error:
            return str(error)
        if topic_id != str(image.topics[topic].topic_id):
            return f"it belongs to an earlier topic of that name ({topic_id})"
        return None

    # Deleting

    async def _drop(self, keys: list[tuple[str, int]]) -> None:
        dropped = []
        for key in keys:
            hosted = self._hosted.pop(key)
            partition = self.partitions.pop(key)
            self.partitions_by_id.pop((partition.topic_id, partition.index))
            partition.gone = True
            partition.stop(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            dropped.append(hosted)
        # A flush that is under way knows its directory by name: it ends before another log can have that name.
        if flushing := [self._flushing[h.partition] for h in dropped if h.partition in self._flushing]:
            await asyncio.wait(flushing)
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
            self._dir_failed(log_dir, error)
            return
        self.remove_later(path, log.config.file_delete_delay_ms)

    def remove_later(self, path: str, delay_ms: int) -> None:
        self._doomed.append((self._clock.monotonic() + delay_ms / 1000, path))

    async def remove_doomed(self) -> None:
        """Remove what was marked for deletion long enough ago."""
        now = self._clock.monotonic()
        due = [path for when, path in self._doomed if when <= now]
        if due:
            self._doomed = [(when, path) for when, path in self._doomed if when > now]
            await self._disk.offload(partial(self._remove, due))

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
                await partition.log.flush()
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
            self._dir_failed(hosted.log_dir, error)

    def _dir_failed(self, log_dir: LogDir, error: OSError) -> None:
        if not log_dir.online:
            return
        log_dir.online = False
        self._logger.error("log dir failed and is offline until a restart", path=log_dir.path, error=str(error))
        failed = [hosted.partition for hosted in self._hosted.values() if hosted.log_dir is log_dir]
        # All of them first: whoever is told of one may look at the others.
        for partition in failed:
            partition.offline = True
        for partition in failed:
            partition.fail()
        self.on_dir_failed(log_dir)
        if not any(other.online for other in self.log_dirs):
            self._on_all_dirs_failed(f"every log dir failed, the last one with: {error}")

    # Looking

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
                    await self._disk.offload(partial(self._close_logs, logs))
                    await self.checkpoint(log_dir)
                    if log_dir.online:
                        await self._disk.offload(partial(mark_clean, self._disk, log_dir, broker_epoch))
                except OSError as error:
                    self._dir_failed(log_dir, error)

    @staticmethod
    def _close_logs(logs: list[Log]) -> None:
        for log in logs:
            log.close_clean()

    # Checkpoints

    async def checkpoint(self, log_dir: LogDir) -> None:
        """Write down how far each replica is written, read and flushed."""
        async with self._checkpointing:
            if log_dir.online:
                try:
                    await self._disk.offload(self._checkpoint_work(log_dir))
                except OSError as error:
                    self._dir_failed(log_dir, error)

    def _checkpoint_work(self, log_dir: LogDir) -> Callable[[], None]:
        """What a worker does: it gets plain numbers, so that topics may come and go meanwhile."""
        partitions = {(p.topic, p.index): p for p in self.in_dir(log_dir)}
        files = {
            checkpoints.RECOVERY_POINT_CHECKPOINT: {key: p.log.recovery_point for key, p in partitions.items()},
            checkpoints.LOG_START_OFFSET_CHECKPOINT: {
                key: p.log.log_start_offset
                for key, p in partitions.items()
                if p.log.log_start_offset > p.log.segments[0].base_offset
            },
            checkpoints.REPLICATION_OFFSET_CHECKPOINT: {key: p.high_watermark for key, p in partitions.items()},
        }

        def work() -> None:
            for name, offsets in files.items():
                checkpoints.write_offsets(self._disk, f"{log_dir.path}/{name}", offsets)

        return work


def directory_ids(log_dirs: Iterable[LogDir]) -> tuple[Uuid, ...]:
    return tuple(sorted(log_dir.directory_id for log_dir in log_dirs))
