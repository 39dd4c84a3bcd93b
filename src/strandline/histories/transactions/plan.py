"""The transactions of a setting: the level of the feature, the topics, the clients, and the brokers' configuration.

Always true: it is drawn from a stream of its own, so that a seed's cluster is the same whether or not there are
transactions.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from strandline.records.control import EPOCH_BUMPING_VERSION

SHARE = 0.2
"""So many of all histories have transactions."""
LEDGER, COPIES = "ledger", "copies"
"""What producers write to, and where copiers write what they read there."""
COPIES_PARTITIONS = 2
COPIERS = "copiers"
"""Their group."""
PASSING = "passing"
"""A topic that is deleted while transactions have records in it; what those had is not judged."""
SESSION_MS = 6_000


@dataclass(frozen=True, slots=True)
class TransactionPlan:
    version: int
    """The cluster's level of `transaction.version`."""
    partitions: int
    """Of the ledger."""
    ids: int
    """Transactional ids of producers; each has a twin that takes it over now and then."""
    copiers: int
    timeout_ms: int
    coordinator_partitions: int
    protocol: Literal["classic", "consumer"]
    """Of the copiers' group."""
    request_ms: int
    """How long clients wait for an answer."""
    broker_request_ms: int
    """`request.timeout.ms`: how long coordinators wait for theirs, and for what they append."""
    fetch_bytes: int
    """What the reader of committed records is given of a partition at once."""

    @property
    def timeout_s(self) -> float:
        return self.timeout_ms / 1000

    def config(self, replicas: int, *, is_synced: bool) -> dict[str, str]:
        """Of the brokers: coordinators keep the same promise as the topics of the load."""
        min_isr = str(2 if replicas == 3 else 1)
        config = {
            "transaction.state.log.num.partitions": str(self.coordinator_partitions),
            "transaction.state.log.replication.factor": str(replicas),
            "transaction.state.log.min.isr": min_isr,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
            "request.timeout.ms": str(self.broker_request_ms),
        }
        if self.copiers:
            config |= {
                "offsets.topic.num.partitions": "1",
                "offsets.topic.replication.factor": str(replicas),
                "min.insync.replicas": min_isr,
                "group.initial.rebalance.delay.ms": "200",
                "group.min.session.timeout.ms": "1000",
                "group.consumer.min.session.timeout.ms": "1000",
                "group.consumer.session.timeout.ms": str(SESSION_MS),
                "group.consumer.min.heartbeat.interval.ms": "500",
                "group.consumer.heartbeat.interval.ms": str(SESSION_MS // 3),
            }
        return config | {"log.flush.interval.messages": "1"} if is_synced else config

    def __str__(self) -> str:
        copiers = f", {self.copiers} {self.protocol} copiers" if self.copiers else ""
        return f"transactions at level {self.version}, {self.ids} ids{copiers}"


def draw(seed: int) -> TransactionPlan | None:
    """The seed's, if it has one."""
    if random.Random(f"{seed}/eos").random() >= SHARE:
        return None
    chance = random.Random(f"{seed}/transactions/plan")
    version = chance.choice((0, 2))
    return TransactionPlan(
        version,
        chance.choice((2, 3, 4)),
        chance.choice((1, 2)),
        chance.choices((0, 1, 2), (2, 2, 1))[0],
        chance.choice((4_000, 7_000)),
        chance.choice((1, 1, 2)),
        chance.choice(("classic", "consumer")),
        chance.choice((1_000, 3_000)),
        # Below 2 a marker that is sent again may end the next transaction, if the first one is late: that is the protocol's.
        chance.choice((1_500, 1_500, 30_000)) if version >= EPOCH_BUMPING_VERSION else 30_000,
        chance.choice((250, 250, 1_048_576)),
    )
