"""What the judges of transactions are shown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from strandline.histories.batches import walk
from strandline.histories.quorum_observation import QuorumObservation
from strandline.histories.transactions.judge import TransactionJudge, TransactionRecord
from strandline.histories.transactions.observation import TransactionObservation
from strandline.ids import ZERO_UUID
from strandline.metadata.image import PartitionImage
from strandline.node.coordinator.transaction_topic import TRANSACTION_STATE
from strandline.records.batch import BatchBuilder
from strandline.transactions import framing
from strandline.transactions.metadata import created
from strandline.transactions.records import transaction_record

KEY = (ZERO_UUID, 0)


class Recorder(TransactionJudge):
    def __init__(self) -> None:
        self.appended_by: list[int] = []

    def appended(self, seen: TransactionObservation, node_id: int, record: TransactionRecord) -> None:
        self.appended_by.append(node_id)


class Replicas:
    """The transaction log as broker 2 leads it in epoch 4, and one replica of it."""

    coverage = SimpleNamespace(note=lambda *named: None)

    def __init__(self, leader_epoch: int) -> None:
        self._state = PartitionImage((1, 2), (1, 2), 2, 4, 0)
        topic = SimpleNamespace(name=TRANSACTION_STATE, topic_id=ZERO_UUID, partitions=[self._state])
        self.image = SimpleNamespace(topics={TRANSACTION_STATE: topic}, topics_by_id={ZERO_UUID: topic})
        self._replica = SimpleNamespace(leads=True, leader_epoch=leader_epoch, high_watermark=0)

    def partition(self, node_id: int, key: object) -> Any:
        return self._replica

    def state(self, key: object) -> PartitionImage:
        return self._state

    def is_rotten(self, node_id: int, key: object) -> bool:
        return False


@pytest.mark.parametrize(("node_id", "leader_epoch", "shown"), [(2, 4, [2]), (1, 3, []), (2, 3, [])])
def test_what_a_coordinator_writes_that_was_deposed_is_not_shown(
    node_id: int, leader_epoch: int, shown: list[int]
) -> None:
    """It stood still, and completes what the next one has completed long ago: that is never committed (seed 715)."""
    recorder = Recorder()
    members: Any = {node_id: SimpleNamespace(observed=None)}
    seen = TransactionObservation(cast(QuorumObservation, None), [recorder], 2, members)
    builder = BatchBuilder()
    metadata = created(7, 1_000, 1).initialized(None, 1_000, 1)
    builder.append(*framing.encode(transaction_record("payments", metadata), 1), timestamp=1)
    batches = [batch for batch, _ in walk(builder.build())]
    seen.appended(cast(Any, Replicas(leader_epoch)), node_id, KEY, batches, is_growth=True)
    assert recorder.appended_by == shown
