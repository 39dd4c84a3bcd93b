"""The two throttles of a broker: what it takes as a follower, and what it gives as a leader.

Always true: only replicas that a topic names are bound, and of those only the ones that are not in sync: a throttle
slows a replica that catches up, never an acknowledgement.
"""

from __future__ import annotations

from strandline.config.dynamic import DynamicConfig
from strandline.replica.partition import Partition
from strandline.replica.throttle import Throttle, is_throttled


class Throttles:
    def __init__(self, dynamic: DynamicConfig) -> None:
        self._dynamic = dynamic
        config = dynamic.current
        self._node_id = config.node_id
        windows = (config.replication_quota_window_num, float(config.replication_quota_window_size_seconds))
        self.leader = Throttle(config.leader_replication_throttled_rate, *windows)
        self.follower = Throttle(config.follower_replication_throttled_rate, *windows)

    def config_changed(self) -> None:
        """The rates are dynamic."""
        config = self._dynamic.current
        self.leader.limit = config.leader_replication_throttled_rate
        self.follower.limit = config.follower_replication_throttled_rate

    def binds_leader(self, partition: Partition) -> bool:
        """What this broker gives of a partition that it leads counts, and waits, unless the follower is in sync."""
        if self.leader.limit is None:
            return False
        config = partition.log.config
        return is_throttled(config.leader_replication_throttled_replicas, partition.index, self._node_id)

    def binds_follower(self, partition: Partition) -> bool:
        """What this broker takes of a partition that it follows counts, and waits, unless it is in sync."""
        if self.follower.limit is None:
            return False
        config = partition.log.config
        return is_throttled(config.follower_replication_throttled_replicas, partition.index, self._node_id)
