"""B6: the partition epoch rises with every change, the leader epoch with every election and every removal, and
neither falls."""

from __future__ import annotations

from strandline.histories.judges.metadata.each_image import EachImage
from strandline.histories.quorum_observation import Violation
from strandline.metadata.image import MetadataImage, PartitionImage


class PartitionEpochs(EachImage):
    def check(
        self, image: MetadataImage, where: str, topic: str, before: PartitionImage | None, after: PartitionImage
    ) -> None:
        if before is None or before == after:
            return
        if after.partition_epoch <= before.partition_epoch:
            raise Violation(f"{where}: changed without a new partition epoch: {before}, {after}")
        if after.leader_epoch < before.leader_epoch:
            raise Violation(f"{where}: the leader epoch moved back: {before}, {after}")
        if after.leader != before.leader and after.leader_epoch == before.leader_epoch:
            raise Violation(f"{where}: another leader in the same leader epoch: {before}, {after}")
        if not set(before.replicas) <= set(after.replicas) and after.leader_epoch == before.leader_epoch:
            raise Violation(f"{where}: a replica is removed in the same leader epoch: {before}, {after}")
