"""A2: a leader commits nothing while fewer than min.insync.replicas are in sync, also for acks=1."""

from __future__ import annotations

from strandline.histories.judges.metadata.each_image import min_isr
from strandline.histories.replica_sight import Key, Replica, ReplicaJudge, ReplicaSight
from strandline.histories.sight import Violation


class EnoughInSync(ReplicaJudge):
    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        if before is None or not (before.leads and after.leads) or after.high_watermark <= before.high_watermark:
            return
        topic = sight.image.topics_by_id.get(key[0])
        if topic is None or len(topic.partitions) <= key[1]:
            return
        enough = min_isr(sight.image, topic.name, topic.partitions[key[1]])
        if len(before.isr) < enough and len(after.isr) < enough:
            raise Violation(f"commits to {after.high_watermark} with {after.isr} in sync")
