"""A judge of single partitions: looks at each committed image once, whichever node has it first, and only at what
changed.

Always true: images come in the order of their offsets; one may be passed over if a node took several steps in one turn.
"""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation
from strandline.metadata.image import MetadataImage, PartitionImage


class EachImage(QuorumJudge):
    with_brokers = False
    """Whether a change of a broker can break the property: then all partitions are looked at."""

    def __init__(self) -> None:
        self._image = MetadataImage()

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        image = after.image
        if image.end_offset <= self._image.end_offset:
            return
        before_image, self._image = self._image, image
        everything = self.with_brokers and before_image.brokers is not image.brokers
        if before_image.topics is image.topics and not everything:
            return
        for name, topic in image.topics.items():
            known = before_image.topics.get(name)
            if known is topic and not everything:
                continue
            is_same = known is not None and known.topic_id == topic.topic_id
            for index, partition in enumerate(topic.partitions):
                was = known.partitions[index] if known and is_same and index < len(known.partitions) else None
                if was is not partition or everything:
                    self.check(image, f"{name}-{index} at {image.end_offset}", name, was, partition)

    def check(
        self, image: MetadataImage, where: str, topic: str, before: PartitionImage | None, after: PartitionImage
    ) -> None:
        """`before` is how it was in the image that was looked at last; None if it is new."""
        raise NotImplementedError
