"""The live parts of a node that are shown over HTTP.

Always true: a look changes nothing, and counts nothing that the parts do not count themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from strandline.api.context import NodeContext
from strandline.api.requests.request_stats import RequestStats
from strandline.node.broker_state import BrokerState
from strandline.node.cleaner import Cleaner
from strandline.node.connection_counts import ConnectionCounts
from strandline.node.connection_resources import ConnectionResources
from strandline.node.coordinator.groups import GroupCoordinator
from strandline.node.events import Events
from strandline.node.quorum.quorum import Quorum
from strandline.replica.topic_stats import BrokerTopicStats


@dataclass(slots=True)
class MonitoredNode:
    node: NodeContext
    quorum: Quorum
    state: Callable[[], BrokerState]
    """NOT_RUNNING for a node that is no broker."""
    events: Events
    requests: RequestStats
    topics: BrokerTopicStats
    groups: GroupCoordinator
    cleaner: Cleaner | None = None
    """None for a node that is no broker."""
    connection_counts: ConnectionCounts = field(default_factory=ConnectionCounts)
    resources: ConnectionResources = field(default_factory=ConnectionResources)
    connections: Callable[[], dict[str, int]] = dict
    """How many there are, by listener."""
    failed_isr_updates: Callable[[], int] = lambda: 0
    """ISR changes of ours that the controller refused or did not answer."""

    @property
    def open_quorum(self) -> Quorum | None:
        """None until it is open, and says something."""
        return self.quorum if self.quorum.is_open else None
