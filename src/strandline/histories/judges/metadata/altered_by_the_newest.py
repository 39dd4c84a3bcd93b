"""B4: an AlterPartition is granted only to the leader, in the leader epoch and partition epoch that the controller has.

Both are taken from the bytes: what was asked for, and the state in the answer follows from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.errors import ErrorCode
from strandline.histories.quorum_observation import QuorumJudge, QuorumObservation, Violation
from strandline.histories.wire import ALTER_PARTITION, QuorumMessage

if TYPE_CHECKING:
    from strandline.wire.stubs.alter_partition import AlterPartitionRequest, AlterPartitionResponse


class AlteredByTheNewest(QuorumJudge):
    def sent(self, observed: QuorumObservation, sent: QuorumMessage) -> None:
        if sent.api_key != ALTER_PARTITION or sent.answer is None or sent.request is None or sent.answer.error_code:
            return
        asked = {
            (bytes(topic.topic_id), partition.partition_index): partition
            for topic in sent.request.topics
            for partition in topic.partitions
        }
        for topic in sent.answer.topics:
            for partition in topic.partitions:
                wanted = asked.get((bytes(topic.topic_id), partition.partition_index))
                if partition.error_code == ErrorCode.NONE and wanted is not None:
                    self._check(sent.candidate_id, wanted, partition)

    @staticmethod
    def _check(
        broker_id: int, wanted: AlterPartitionRequest.PartitionData, answered: AlterPartitionResponse.PartitionData
    ) -> None:
        # An ISR that ends a reassignment takes replicas away, and so begins another epoch of the same leader.
        if answered.leader_epoch - wanted.leader_epoch not in (0, 1) or answered.leader_id != broker_id:
            raise Violation(
                f"grants {broker_id} an ISR of leader epoch {wanted.leader_epoch}, "
                f"and {answered.leader_id} leads in {answered.leader_epoch}"
            )
        if answered.partition_epoch - wanted.partition_epoch not in (0, 1):
            raise Violation(
                f"grants {broker_id} an ISR of partition epoch {wanted.partition_epoch}, and makes it {answered.partition_epoch}"
            )
