"""What the APIs reach of transactions in this node: its coordinator, its producer ids, and the coordinators of others."""

from __future__ import annotations

from strandline.node.coordinator.transactions import TransactionCoordinator
from strandline.node.producer_ids import NoProducerIds, ProducerIds
from strandline.node.transactions.verifier import TransactionVerifier


class NodeTransactions:
    def __init__(
        self,
        coordinator: TransactionCoordinator,
        verifier: TransactionVerifier,
        producer_ids: ProducerIds | NoProducerIds,
    ) -> None:
        self.create_topic = coordinator.create_topic
        self.write = coordinator.write
        self.read = coordinator.read
        self.read_all = coordinator.read_all
        self.verify = verifier.verify
        self.await_producer_id = producer_ids.await_one
        self._producer_ids = producer_ids

    @property
    def has_producer_id(self) -> bool:
        return self._producer_ids.at_hand
