"""B15: a reassignment ends when all that were added are in sync, and takes no replica away that min.insync.replicas
asks for."""

from __future__ import annotations

from strandline.histories.judges.metadata.each_image import EachImage
from strandline.histories.min_isr import min_isr
from strandline.histories.quorum_observation import Violation
from strandline.metadata.image import MetadataImage, PartitionImage


class ReassignedInSync(EachImage):
    def check(
        self, image: MetadataImage, where: str, topic: str, before: PartitionImage | None, after: PartitionImage
    ) -> None:
        if before is None or after.partition_epoch != before.partition_epoch + 1:
            return  # new, or steps in between were not seen
        adding, removing = set(before.adding_replicas), set(before.removing_replicas)
        if not (adding or removing) or after.adding_replicas or after.removing_replicas:
            return
        if not adding <= set(after.replicas) or removing & set(after.replicas):
            return  # it was called off
        if not adding <= set(after.isr):
            raise Violation(f"{where}: reassigned before the new replicas are in sync: {before}, {after}")
        went = [i for i in removing & set(before.isr) if i in image.brokers and image.brokers[i].active]
        if went and len(after.isr) < min_isr(image, topic, after):
            raise Violation(f"{where}: reassigned with too few in sync: {before}, {after}")
