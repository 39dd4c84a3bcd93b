"""The dependencies of a transaction shard on its node: configuration, the cluster's level, producer ids, where markers go, its
journal.

Always true: they are the newest that the node has acted on; nothing here waits.
"""

from __future__ import annotations

from typing import Protocol

from strandline.config.node import NodeConfig
from strandline.transactions.markers import EndMarker


class TransactionDependencies(Protocol):
    @property
    def config(self) -> NodeConfig: ...

    @property
    def transaction_version(self) -> int:
        """The cluster's level of `transaction.version`."""
        ...

    @property
    def record_bytes_max(self) -> int:
        """`max.message.bytes` of the transaction log."""
        ...

    def take_producer_id(self) -> int | None:
        """A producer id that was never given out; None while there is none, and then more are asked for."""
        ...

    def send_marker(self, marker: EndMarker) -> None:
        """Have this marker written to its partitions, until each has it."""
        ...

    def forget_markers(self, partition: int, coordinator_epoch: int) -> None:
        """Stop sending the markers of exactly this load of a partition of `__transaction_state` (TXN-T31)."""
        ...

    def note(self, kind: str, partition: int, reason: str, **facts: object) -> None:
        """Keep in the node's journal what happened in this partition of `__transaction_state`."""
        ...
