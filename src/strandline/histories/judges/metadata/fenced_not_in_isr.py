"""I5: a fenced broker is in no ISR.

Without eligible leader replicas the last member of an ISR stays in it, and there is no leader.
"""

from __future__ import annotations

from strandline.histories.judges.metadata.each_image import EachImage
from strandline.histories.quorum_observation import Violation
from strandline.metadata.image import MetadataImage, PartitionImage
from strandline.metadata.records import NO_LEADER


class FencedNotInIsr(EachImage):
    with_brokers = True

    def check(
        self, image: MetadataImage, where: str, topic: str, before: PartitionImage | None, after: PartitionImage
    ) -> None:
        for broker_id in after.isr:
            broker = image.brokers.get(broker_id)
            is_last = len(after.isr) == 1 and after.leader == NO_LEADER
            if (broker is None or broker.fenced) and not is_last:
                raise Violation(f"{where}: {broker_id} is fenced and in {after}")
