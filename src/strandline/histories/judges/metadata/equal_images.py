"""I9, D14: the metadata of every node is a prefix of the controller's.

No node applies what is not committed, and two nodes that have applied the same have the same image.
"""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation
from strandline.metadata.image import MetadataImage


class EqualImages(QuorumJudge):
    def __init__(self) -> None:
        self._images: dict[int, MetadataImage] = {}
        """By end offset, the first one seen."""
        self._committed = 0

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        image = after.image
        if after.high_watermark is not None and after.high_watermark > self._committed:
            self._committed = after.high_watermark
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
