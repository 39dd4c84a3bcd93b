"""The cluster's metadata as nodes apply it: the same everywhere at the same offset (I9), with sound partitions (I5, I6)."""

from __future__ import annotations

from strandline.histories.sight import Checker, Seen, Sight, Violation
from strandline.metadata.image import TOPIC_RESOURCE, MetadataImage, PartitionImage
from strandline.metadata.records import NO_LEADER

MIN_ISR = "min.insync.replicas"


class EqualImages(Checker):
    """Nobody applies what is not committed (D14); two nodes that have applied the same have the same image."""

    def __init__(self) -> None:
        self._images: dict[int, MetadataImage] = {}
        """By end offset, the first one seen."""
        self._committed = 0

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        image = after.image
        self._committed = max(self._committed, after.high_watermark or 0)
        if before is not None and before.image is image:
            return
        if image.end_offset > self._committed:
            raise Violation(f"applied up to {image.end_offset}, and only {self._committed} is committed")
        if before is not None and before.life == after.life and image.end_offset < before.image.end_offset:
            raise Violation(f"the image moved back from {before.image.end_offset} to {image.end_offset}")
        known = self._images.setdefault(image.end_offset, image)
        if known is not image and known != image:
            raise Violation(f"image at {image.end_offset} differs in {', '.join(differences(known, image))}")


def differences(one: MetadataImage, other: MetadataImage) -> list[str]:
    """The fields in which two images differ, and what each says."""
    found = []
    for name in type(one).__dataclass_fields__:
        here, there = getattr(one, name), getattr(other, name)
        if here == there:
            continue
        if isinstance(here, int):
            found.append(f"{name}: {here} and {there}")
        else:
            keys = [key for key in {**here, **there} if here.get(key) != there.get(key)]
            found += [f"{name}[{key}]: {here.get(key)} and {there.get(key)}" for key in keys[:3]]
    return found


class _EachImage(Checker):
    """Looks at each committed image once, whichever node has it first."""

    def __init__(self) -> None:
        self._looked_at = 0

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        if after.image.end_offset > self._looked_at:
            self._looked_at = after.image.end_offset
            for name, topic in after.image.topics.items():
                for index, partition in enumerate(topic.partitions):
                    self.check(after.image, f"{name}-{index}", name, partition)

    def check(self, image: MetadataImage, where: str, topic: str, partition: PartitionImage) -> None:
        raise NotImplementedError


class FencedIsNotInSync(_EachImage):
    """I5. Without eligible leader replicas the last member of an ISR stays in it, and nobody leads."""

    def check(self, image: MetadataImage, where: str, topic: str, partition: PartitionImage) -> None:
        for broker_id in partition.isr:
            broker = image.brokers.get(broker_id)
            is_last = len(partition.isr) == 1 and partition.leader == NO_LEADER
            if (broker is None or broker.fenced) and not is_last:
                raise Violation(f"{where} at {image.end_offset}: {broker_id} is fenced and in {partition}")


class InSyncReplicas(_EachImage):
    """I6, and who leads is in sync."""

    def check(self, image: MetadataImage, where: str, topic: str, partition: PartitionImage) -> None:
        replicas, isr, elr = set(partition.replicas), set(partition.isr), set(partition.elr)
        if not isr <= replicas or not elr <= replicas or isr & elr:
            raise Violation(f"{where} at {image.end_offset}: {partition}")
        if partition.has_leader and partition.leader not in isr:
            raise Violation(f"{where} at {image.end_offset}: its leader is not in sync: {partition}")
        wanted = min(int(image.config(TOPIC_RESOURCE, topic).get(MIN_ISR, 1)), len(replicas))
        if len(isr) >= wanted and elr and partition.has_leader:
            raise Violation(f"{where} at {image.end_offset}: eligible leader replicas beside a full ISR: {partition}")
