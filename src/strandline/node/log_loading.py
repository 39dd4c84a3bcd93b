"""Logs on the log dirs: found at the start, placed when they are new, opened and recovered.

Always true: a directory whose topic is gone, or that another log dir has too, is set aside and never read; a new log
goes where the metadata says, else to the online log dir with the fewest partitions; its directory is on the device
before the partition is hosted.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

from strandline.config.topic_config import TopicConfig
from strandline.ids import TopicPartition
from strandline.log import checkpoints, names
from strandline.log.errors import CorruptLog
from strandline.log.recovery import RecoveredLog, load
from strandline.log.rewriting import promises_device, rewrite
from strandline.metadata.image import MetadataImage, TopicImage
from strandline.node.log_dirs import UNKNOWN_DIRECTORIES, LogDir, directory_of
from strandline.node.logger import Logger
from strandline.ports import Clock, Disk, is_out_of_handles


class PlacedLog(NamedTuple):
    topic: TopicImage
    partition: int
    log_dir: LogDir
    known: bool
    """There is a log of this very topic; what the checkpoints say is about it."""

    @property
    def key(self) -> TopicPartition:
        return self.topic.name, self.partition

    @property
    def high_watermark(self) -> int:
        """As it was last written down (S12)."""
        return self.log_dir.high_watermarks.get(self.key, 0) if self.known else 0


class LogLoading:
    def __init__(
        self, node_id: int, disk: Disk, clock: Clock, randomness: random.Random, logger: Logger, log_dirs: list[LogDir]
    ) -> None:
        self._node_id = node_id
        self._disk = disk
        self._clock = clock
        self._randomness = randomness
        self._logger = logger
        self._log_dirs = log_dirs
        self._found: dict[TopicPartition, LogDir] = {}

    def find(self, image: MetadataImage) -> list[tuple[LogDir, OSError]]:
        """See what the log dirs hold before the first image is applied: logs to open, and strays to set aside. Those
        that could not be looked through have failed. Blocks."""
        failed = []
        for log_dir in self._log_dirs:
            if log_dir.online:
                try:
                    self._find_in(log_dir, image)
                except OSError as error:
                    if is_out_of_handles(error):  # its logs are there, and must not be taken for new ones
                        raise
                    failed.append((log_dir, error))
        return failed

    def _find_in(self, log_dir: LogDir, image: MetadataImage) -> None:
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
                self._logger.warning("set a directory aside that is not part of the cluster", path=aside, reason=reason)

    def _stray_reason(self, image: MetadataImage, topic: str, index: int, path: str) -> str | None:
        if self._disk.is_link(path):
            return "it is a symbolic link"
        partition = image.partition(topic, index)
        if partition is None or self._node_id not in partition.replicas:
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

    def place(
        self, wanted: Iterable[tuple[TopicImage, int]], hosted: Iterable[LogDir], *, at_start: bool
    ) -> tuple[list[PlacedLog], list[tuple[TopicImage, int]]]:
        """Where each log is, or is to be, and those that can't be had; `hosted` are the log dirs of those that are open
        already.

        One that may be in a log dir which is offline now is not made anew in another: it has records there. At the
        start that may be any of which the controller does not know where it is; what comes later never was on this
        node.
        """
        online = {log_dir.directory_id: log_dir for log_dir in self._log_dirs if log_dir.online}
        if not online:
            return [], [*wanted]
        is_whole = len(online) == len(self._log_dirs)
        counts = dict.fromkeys(online, 0)
        for of_open in hosted:
            if of_open.online:
                counts[of_open.directory_id] += 1
        places, lost = [], []
        for topic, index in wanted:
            found = self._found.pop((topic.name, index), None)
            assigned = directory_of(topic.partitions[index], self._node_id)
            log_dir = found or online.get(assigned)
            if log_dir is None and (is_whole or (assigned in UNKNOWN_DIRECTORIES and not at_start)):
                log_dir = online[min(counts, key=counts.__getitem__)]
            if log_dir is None:
                lost.append((topic, index))
                continue
            if log_dir.online:
                counts[log_dir.directory_id] += 1
            places.append(PlacedLog(topic, index, log_dir, found is not None))
        return places, lost

    def load_all(self, places: list[PlacedLog], configs: list[TopicConfig]) -> list[RecoveredLog | OSError]:
        """Open or create logs. Once there is no descriptor left, none of the others is tried: each would wait for one.
        Blocks."""
        opened: list[RecoveredLog | OSError] = []
        for place, config in zip(places, configs, strict=True):
            one = self._load(place, config)
            opened.append(one)
            if isinstance(one, OSError) and is_out_of_handles(one):
                opened += [one] * (len(places) - len(opened))
                break
        for path in dict.fromkeys(place.log_dir.path for place in places):
            try:
                self._disk.sync_dir(path)
            except OSError as error:
                opened = [
                    error if place.log_dir.path == path else one for place, one in zip(places, opened, strict=True)
                ]
        return opened

    def _load(self, place: PlacedLog, config: TopicConfig) -> RecoveredLog | OSError:
        topic, log_dir, key = place.topic, place.log_dir, place.key
        assert topic.name != names.CLUSTER_METADATA_TOPIC, "the metadata log has a place of its own"
        directory = f"{log_dir.path}/{names.partition_dir(*key)}"
        try:
            recovered = load(
                self._disk,
                directory,
                config,
                clean=log_dir.clean and place.known,
                recovery_point=log_dir.recovery_points.get(key, 0) if place.known else 0,
                log_start_offset=log_dir.start_offsets.get(key, 0) if place.known else 0,
                clean_offset=log_dir.clean_offsets.get(key, 0) if place.known else 0,
                high_watermark=place.high_watermark,
                now_ms=self._clock.wall_ms(),
            )
            metadata = f"{directory}/{checkpoints.PARTITION_METADATA}"
            is_new, has_records = not self._disk.exists(metadata), recovered.log.log_end_offset > 0
            # It may be in memory only: a node that was killed did not sync it, and one that stopped in order not that
            # of an empty log.
            if is_new or not log_dir.clean or not has_records:
                file = self._disk.open(metadata, create=True)
                if is_new:
                    file.append(checkpoints.partition_metadata(str(topic.topic_id)))
                elif not log_dir.clean and promises_device(config):
                    rewrite(file)
                if has_records:
                    # Recovery vouches for the records that it found, and without this file they are a stray's.
                    file.sync_blocking()
                    file.close()
                else:
                    recovered.log.sync_with_names(file)
        except OSError as error:
            return error
        except CorruptLog as error:
            return OSError(str(error))
        if not place.known:
            log_dir.clean_offsets.pop(key, None)
        elif log_dir.clean_offsets.get(key, 0) > recovered.log.log_end_offset:
            log_dir.clean_offsets[key] = recovered.log.log_end_offset
        return recovered
