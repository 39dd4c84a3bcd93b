"""What fetchers need of their node.

Always true: it does not change while they live; what does is behind a call.
"""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from strandline.config.node import NodeConfig
from strandline.node.fetching.throttles import Throttles
from strandline.node.logger import Logger
from strandline.ports import Clock
from strandline.raft.messages import Address
from strandline.replica.partition import Partition


@dataclass(frozen=True, slots=True)
class FetcherDependencies:
    config: NodeConfig
    clock: Clock
    randomness: random.Random
    logger: Logger
    tls: ssl.SSLContext | None
    throttles: Throttles
    address_of: Callable[[int], Address | None]
    """Where a broker's inter-broker listener is, as the newest image says."""
    broker_epoch: Callable[[], int]
    on_opened: Callable[[int], None]
    on_closed: Callable[[int, str], None]
    on_storage_error: Callable[[Partition, OSError], None]
    """The partition is not followed any more when this is called."""
