"""B10: who is eligible stays so until it is in sync, may have lost records, is removed, or enough others are in sync.

When min ISR changes, the controller forgets who was eligible under the other one.
"""

from __future__ import annotations

from strandline.histories.judges.metadata.each_image import EachImage
from strandline.histories.min_isr import min_isr
from strandline.histories.quorum_observation import QuorumNodeState, QuorumObservation, Violation
from strandline.metadata.image import MetadataImage, PartitionImage

FEATURE = "eligible.leader.replicas.version"
RECOVERING = 1


class ElrIsKept(EachImage):
    def __init__(self) -> None:
        super().__init__()
        self._before = MetadataImage()
        """The image that was looked at last."""

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        self._before = self._image
        super().changed(observed, node_id, before, after)

    def check(
        self, image: MetadataImage, where: str, topic: str, before: PartitionImage | None, after: PartitionImage
    ) -> None:
        if before is None or not before.elr or after.partition_epoch != before.partition_epoch + 1:
            return
        if not image.features.get(FEATURE, 0) or after.leader_recovery_state == RECOVERING:
            return
        if len(after.isr) >= min_isr(image, topic, after):
            return
        if min_isr(image, topic, after) != min_isr(self._before, topic, before):
            return
        for replica in set(before.elr) & set(after.replicas) - {*after.elr, *after.isr}:
            broker = image.brokers.get(replica)
            if (
                broker is not None and broker.epoch < self._before.end_offset
            ):  # else it has just come back, perhaps without its tail
                raise Violation(f"{where}: {replica} is not eligible any more: {before}, {after}")
