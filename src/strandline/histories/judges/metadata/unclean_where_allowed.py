"""B9: only a topic that allows it gets a leader who may lack committed records, unless that is the last one that
led."""

from __future__ import annotations

from strandline.histories.judges.metadata.each_image import EachImage
from strandline.histories.quorum_observation import Violation
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE, MetadataImage, PartitionImage

UNCLEAN = "unclean.leader.election.enable"
RECOVERING = 1


class UncleanWhereAllowed(EachImage):
    def check(
        self, image: MetadataImage, where: str, topic: str, before: PartitionImage | None, after: PartitionImage
    ) -> None:
        if before is None or after.leader_recovery_state != RECOVERING or before.leader_recovery_state == RECOVERING:
            return
        if after.partition_epoch != before.partition_epoch + 1:
            return  # who was the last one that led was not seen
        of_all = image.config(BROKER_RESOURCE, CLUSTER_DEFAULT).get(UNCLEAN, "false")
        if image.config(TOPIC_RESOURCE, topic).get(UNCLEAN, of_all) == "true":
            return
        if after.leader not in (before.leader, *before.last_known_elr):
            raise Violation(f"{where}: an unclean election that the topic does not allow: {before}, {after}")
