"""How this broker's replicas keep up with the others': fetchers, ISR changes, throttles, the places of replicas.

Always true: a partition that another node leads is fetched from it alone; one that is led here, or that can't be
written, is not fetched at all (rule I11). Nothing is fetched or sent after `close` returned.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from strandline.api.fetching.follower_sessions import FollowerSessions
from strandline.metadata.image import MetadataImage
from strandline.node.controller_channel import ControllerChannel
from strandline.node.fetching.fetchers import Fetchers
from strandline.node.fetching.throttles import Throttles
from strandline.node.isr_updates import IsrUpdates
from strandline.node.log_dirs import LogDir
from strandline.node.logger import Logger
from strandline.node.peers import Peers
from strandline.node.repair import Repair
from strandline.node.replica_dirs import ReplicaDirs
from strandline.node.replicas import Replicas
from strandline.node.scrubber import Scrubber
from strandline.ports import Clock
from strandline.raft.messages import Address
from strandline.replica.partition import Partition


class Replication:
    def __init__(
        self,
        replicas: Replicas,
        clock: Clock,
        randomness: random.Random,
        logger: Logger,
        channel: ControllerChannel,
        peers: Peers,
        sessions: FollowerSessions,
        *,
        broker_epoch: Callable[[], int],
        committed: Callable[[], MetadataImage],
        on_opened: Callable[[int], None],
        on_closed: Callable[[int, str], None],
        on_task_ended: Callable[[asyncio.Task[None]], None],
    ) -> None:
        config = replicas.config
        self.throttles = Throttles(replicas.dynamic_config)
        self.fetchers = Fetchers(
            config,
            clock,
            randomness,
            logger,
            self.throttles,
            address_of=self._address_of,
            broker_epoch=broker_epoch,
            on_opened=on_opened,
            on_closed=on_closed,
            on_storage_error=replicas.storage_error,
            on_task_ended=on_task_ended,
        )
        self._isr_updates = IsrUpdates(channel, config.node_id, broker_epoch, randomness, logger, on_task_ended)
        self._dirs = ReplicaDirs(channel, config.node_id, broker_epoch, committed, randomness, logger, on_task_ended)
        self.repair = Repair(
            config.node_id,
            peers,
            config.inter_broker_listener,
            self._address_of,
            clock,
            replicas.dependencies.note,
            replicas.storage_error,
            logger,
        )
        self._scrubber = Scrubber(replicas.partitions.values, clock, self.repair.damaged, replicas.storage_error)
        self.on_role: Callable[[Partition], None] = lambda partition: None
        """A partition has another leader, or another leader epoch, or is no longer here."""
        self._replicas = replicas
        self._sessions = sessions
        replicas.dependencies.broker_epoch_of = broker_epoch
        replicas.dependencies.on_isr_proposed = self._isr_updates.submit
        replicas.on_role = self._role
        replicas.on_hosted = self._hosted
        replicas.on_damaged = self.repair.damaged
        replicas.on_unopened = lambda topic, index, log_dir: self._dirs.is_in(log_dir.directory_id, topic, index)

    def _role(self, partition: Partition) -> None:
        """Fetch it from its leader."""
        if partition.gone:
            self.repair.forget(partition)
        if partition.leads or partition.offline or partition.gone or not partition.state.has_leader:
            self.fetchers.unfollow(partition)
        else:
            self.fetchers.follow(partition, partition.state.leader)
        self.on_role(partition)

    def _hosted(self, partition: Partition, log_dir: LogDir) -> None:
        self._sessions.opened(partition.topic, partition.topic_id, partition.index)
        topic = self._replicas.dependencies.image.topics_by_id.get(partition.topic_id)
        if topic is not None:
            self._dirs.is_in(log_dir.directory_id, topic, partition.index)

    def _address_of(self, broker_id: int) -> Address | None:
        config, broker = self._replicas.config, self._replicas.dependencies.image.brokers.get(broker_id)
        if broker is None:
            return None
        endpoint = broker.endpoint(config.inter_broker_listener)
        previous, protocols = config.previous_inter_broker_listener, config.protocols
        if endpoint is None and previous is not None and protocols[previous] == protocols[config.inter_broker_listener]:
            endpoint = broker.endpoint(previous)  # it was not restarted yet
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

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

    def jobs(self) -> list[Coroutine[Any, Any, None]]:
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
        await self._dirs.close()
