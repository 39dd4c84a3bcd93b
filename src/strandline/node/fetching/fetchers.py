"""Who is fetched from whom: every partition that this broker follows, and a fetcher for each of their leaders.

Always true: a partition that is followed has exactly one fetcher, and one that is led here or has no leader has none
(rule I11); a fetcher lives as long as it has a partition.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable

from strandline.config.node import NodeConfig
from strandline.node.fetching.dependencies import FetcherDependencies
from strandline.node.fetching.fetcher import Fetcher
from strandline.node.fetching.throttles import Throttles
from strandline.node.logger import Logger
from strandline.node.peer_tls import context_to
from strandline.ports import Clock
from strandline.raft.messages import Address
from strandline.replica.partition import Partition

NO_LEADER = -1


class Fetchers:
    def __init__(
        self,
        config: NodeConfig,
        clock: Clock,
        randomness: random.Random,
        logger: Logger,
        throttles: Throttles,
        *,
        address_of: Callable[[int], Address | None],
        broker_epoch: Callable[[], int],
        on_opened: Callable[[int], None],
        on_closed: Callable[[int, str], None],
        on_storage_error: Callable[[Partition, OSError], None],
        on_task_ended: Callable[[asyncio.Task[None]], None],
    ) -> None:
        """`address_of` is asked at each attempt to connect; `on_task_ended` hears of a fetcher that failed by a bug."""
        self._dependencies = FetcherDependencies(
            config,
            clock,
            randomness,
            logger,
            context_to(config, config.inter_broker_listener),
            throttles,
            address_of,
            broker_epoch,
            on_opened,
            on_closed,
            self._storage_error,
        )
        self._on_storage_error = on_storage_error
        self._on_task_ended = on_task_ended
        self._fetchers: dict[int, Fetcher] = {}
        self._leaders: dict[Partition, int] = {}
        self._ending: dict[asyncio.Task[None], None] = {}
        self._is_closed = False

    def leader_of(self, partition: Partition) -> int | None:
        """From whom it is fetched."""
        return self._leaders.get(partition)

    @property
    def is_closed(self) -> bool:
        """Nothing is fetched any more: the node stops."""
        return self._is_closed

    @property
    def fetchers(self) -> Iterable[Fetcher]:
        return self._fetchers.values()

    def follow(self, partition: Partition, leader_id: int) -> None:
        """Fetch it from that leader. If it is already, its position or leader epoch changed: it is asked for anew."""
        before = self._leaders.get(partition)
        if before is not None and before != leader_id:
            self.unfollow(partition)
        if leader_id == NO_LEADER or self._is_closed:
            return
        assert leader_id != self._dependencies.config.node_id, f"{partition} is led here"
        fetcher = self._fetchers.get(leader_id)
        if fetcher is None:
            fetcher = self._fetchers[leader_id] = Fetcher(leader_id, self._dependencies)
            fetcher.when_ended(self._on_task_ended)
        self._leaders[partition] = leader_id
        fetcher.follow(partition)

    def unfollow(self, partition: Partition) -> None:
        """It leads, has no leader, is offline or gone. Nothing happens if it is not followed."""
        leader_id = self._leaders.pop(partition, None)
        if leader_id is not None:
            fetcher = self._fetchers[leader_id]
            fetcher.unfollow(partition)
            if not fetcher.session.members:
                # Not at once: the next partition of the same leader may be about to come.
                asyncio.get_running_loop().call_soon(self._end_if_idle, fetcher)

    def apply(self, followed: Iterable[tuple[Partition, int]], unfollowed: Iterable[Partition] = ()) -> None:
        for partition in unfollowed:
            self.unfollow(partition)
        for partition, leader_id in followed:
            self.follow(partition, leader_id)

    def _end_if_idle(self, fetcher: Fetcher) -> None:
        if not fetcher.session.members and self._fetchers.get(fetcher.leader_id) is fetcher:
            del self._fetchers[fetcher.leader_id]
            self._end(fetcher)

    def _end(self, fetcher: Fetcher) -> None:
        task = fetcher.close()
        self._ending[task] = None
        task.add_done_callback(lambda task: self._ending.pop(task, None))

    def _storage_error(self, partition: Partition, error: OSError) -> None:
        self.unfollow(partition)
        self._on_storage_error(partition, error)

    async def close(self) -> None:
        """End every fetcher; nothing is fetched from here on."""
        self._is_closed = True
        fetchers, self._fetchers = self._fetchers, {}
        self._leaders.clear()
        for fetcher in fetchers.values():
            self._end(fetcher)
        await asyncio.gather(*self._ending, return_exceptions=True)
