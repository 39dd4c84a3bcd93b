"""I6: ISR and ELR are apart and within the replicas, there is no ELR beside a full ISR, and who leads is in sync."""

from __future__ import annotations

from strandline.histories.judges.metadata.each_image import EachImage
from strandline.histories.min_isr import min_isr
from strandline.histories.quorum_observation import Violation
from strandline.metadata.image import MetadataImage, PartitionImage


class IsrAndElr(EachImage):
    def check(
        self, image: MetadataImage, where: str, topic: str, before: PartitionImage | None, after: PartitionImage
    ) -> None:
        replicas, isr, elr = set(after.replicas), set(after.isr), set(after.elr)
        if not isr <= replicas or not elr <= replicas or isr & elr:
            raise Violation(f"{where}: {after}")
        if after.has_leader and after.leader not in isr:
            raise Violation(f"{where}: its leader is not in sync: {after}")
        if elr and after.has_leader and len(isr) >= min_isr(image, topic, after):
            raise Violation(f"{where}: eligible leader replicas beside a full ISR: {after}")
