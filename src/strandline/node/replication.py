"""How this broker's replicas keep up with the others': fetchers, ISR changes, throttles, the places of replicas.

Always true: a partition that another node leads is fetched from it alone; one that is led here, or that can't be
written, is not fetched at all (rule I11). Nothing is fetched or sent after `close` returned.
"""

from __future__ import annotations

import asyncio

from strandline.api.fetching.follower_sessions import FollowerSessions
from strandline.metadata.image import TopicImage
from strandline.node.dir_assignments import DirAssignments
from strandline.node.fetching.fetchers import Fetchers
from strandline.node.fetching.throttles import Throttles
from strandline.node.isr_updates import IsrUpdates
from strandline.node.log_dirs import LogDir
from strandline.node.repair import Repair
from strandline.node.replicas import Replicas
from strandline.node.scrubber import Scrubber
from strandline.node.tasks import AsyncWork
from strandline.replica.partition import Partition


class Replication:
    def __init__(
        self,
        replicas: Replicas,
        fetchers: Fetchers,
        throttles: Throttles,
        isr_updates: IsrUpdates,
        dir_assignments: DirAssignments,
        repair: Repair,
        scrubber: Scrubber,
        sessions: FollowerSessions,
    ) -> None:
        self.fetchers = fetchers
        self.throttles = throttles
        self.repair = repair
        self._isr_updates = isr_updates
        self._dir_assignments = dir_assignments
        self._scrubber = scrubber
        self._replicas = replicas
        self._sessions = sessions

    # What the replicas report

    def role_changed(self, partition: Partition) -> None:
        """Fetch it from its leader."""
        if partition.gone:
            self.repair.forget(partition)
        if partition.leads or partition.offline or partition.gone or not partition.state.has_leader:
            self.fetchers.unfollow(partition)
        else:
            self.fetchers.follow(partition, partition.state.leader)

    def hosted(self, partition: Partition, log_dir: LogDir) -> None:
        """The partition is open here now."""
        self._sessions.opened(partition.topic, partition.topic_id, partition.index)
        topic = self._replicas.image.topics_by_id.get(partition.topic_id)
        if topic is not None:
            self._dir_assignments.is_in(log_dir.directory_id, topic, partition.index)

    def unopened(self, topic: TopicImage, index: int, log_dir: LogDir) -> None:
        """The partition is in this log dir, which failed before it was open."""
        self._dir_assignments.is_in(log_dir.directory_id, topic, index)

    # Limits

    def is_leader_throttled(self, partition: Partition) -> bool:
        """Whether a follower that is not in sync must wait before it gets more."""
        return self.throttles.binds_leader(partition) and self.throttles.leader.is_over(
            asyncio.get_running_loop().time()
        )

    def replicated(self, partition: Partition, size_bytes: int) -> None:
        """What a follower got counts against the leader's limit, whether it is in sync or not."""
        if self.throttles.binds_leader(partition):
            self.throttles.leader.record(size_bytes, asyncio.get_running_loop().time())

    @property
    def failed_isr_updates(self) -> int:
        return self._isr_updates.failed

    def jobs(self) -> list[AsyncWork[None]]:
        return [self._shrink_isrs(), self._scrubber.run()]

    async def _shrink_isrs(self) -> None:
        """Twice in `replica.lag.time.max.ms`, as Kafka does, look who was behind for too long."""
        lag_time_max_s = self._replicas.config.replica_lag_time_max_ms / 1000
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(lag_time_max_s / 2)
            now = loop.time()
            for partition in tuple(self._replicas.partitions.values()):
                partition.shrink_isr(now)

    async def close(self) -> None:
        await self.fetchers.close()
        await self.repair.close()
        await self._isr_updates.close()
        await self._dir_assignments.close()
