"""How many replicas of a partition in sync are enough to commit, as an image has it."""

from __future__ import annotations

from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE, MetadataImage, PartitionImage

MIN_ISR = "min.insync.replicas"


def min_isr(image: MetadataImage, topic: str, partition: PartitionImage) -> int:
    of_all = image.config(BROKER_RESOURCE, CLUSTER_DEFAULT).get(MIN_ISR, 1)
    return min(int(image.config(TOPIC_RESOURCE, topic).get(MIN_ISR, of_all)), len(partition.replicas))
