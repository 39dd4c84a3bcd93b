"""The cluster as clients of one listener see it: which brokers they can reach, and what that makes of a partition.

Always true: it is a view of one image and changes nothing. A broker is alive if it is not fenced and has the listener;
a replica is offline if its broker is not alive, or its log dir there is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from strandline.controller.placement import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from strandline.ids import Uuid
from strandline.metadata.image import BrokerImage, Endpoint, PartitionImage

_LOST_DIRECTORY = Uuid(bytes(15) + b"\2")
"""The directory id that Kafka reserves for one that is known to be gone."""


class ClusterView:
    __slots__ = ("_brokers", "alive", "listener", "reachable")

    def __init__(self, brokers: Mapping[int, BrokerImage], listener: str) -> None:
        self.listener = listener
        self.reachable = {
            broker_id: endpoint
            for broker_id, broker in brokers.items()
            if (endpoint := broker.endpoint(listener)) is not None
        }
        """Brokers that have the listener, fenced ones too."""
        self.alive = frozenset(broker_id for broker_id in self.reachable if not brokers[broker_id].fenced)
        self._brokers = brokers

    def nodes(
        self, *, fenced: bool = False, departed: frozenset[int] = frozenset()
    ) -> Iterator[tuple[BrokerImage, Endpoint]]:
        """The brokers to name to a client, in the order of their ids: those alive, with `departed` or all the `fenced` ones."""
        for broker_id in sorted(self.reachable):
            if fenced or broker_id in self.alive or broker_id in departed:
                yield self._brokers[broker_id], self.reachable[broker_id]

    def is_registered(self, broker_id: int) -> bool:
        return broker_id in self._brokers

    def offline_replicas(self, partition: PartitionImage) -> list[int]:
        directories = partition.directories
        if len(directories) != len(partition.replicas):
            return [broker_id for broker_id in partition.replicas if broker_id not in self.alive]
        return [
            broker_id
            for broker_id, directory in zip(partition.replicas, directories, strict=True)
            if broker_id not in self.alive or not self._has_online(broker_id, directory)
        ]

    def _has_online(self, broker_id: int, directory: Uuid) -> bool:
        online = self._brokers[broker_id].log_dirs
        # A broker registered before it had directory ids says nothing about them.
        unknown = directory in (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY)
        return directory in online or unknown or (directory != _LOST_DIRECTORY and not online)
