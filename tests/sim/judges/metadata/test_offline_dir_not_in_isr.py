from __future__ import annotations

from dataclasses import replace
from typing import Any

from strandline.histories.judges.metadata.offline_dir_not_in_isr import OfflineDirNotInIsr
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage

from ..quorum.stage import broken, image, stage

A, B, C = (Uuid(bytes([n] * 16)) for n in (1, 2, 3))


def image_with_dirs(end_offset: int, dirs_of_2: tuple[Uuid, ...], **partition: Any) -> MetadataImage:
    """Replica 1 is in A, replica 2 in B; the leader comes second."""
    known = image(end_offset, **{"replicas": (2, 1), "directories": (B, A)} | partition)
    brokers = {1: replace(known.brokers[1], log_dirs=(A,)), 2: replace(known.brokers[2], log_dirs=dirs_of_2)}
    return replace(known, brokers=brokers)


def test_who_is_in_a_dir_that_is_gone_leaves() -> None:
    story = stage(OfflineDirNotInIsr)
    story.see(1, image=image_with_dirs(5, (B, C)))
    story.see(1, image=image_with_dirs(6, (C,), isr=(1,)))


def test_who_stays_in_sync_all_the_same_is_seen() -> None:
    story = stage(OfflineDirNotInIsr)
    story.see(1, image=image_with_dirs(5, (B, C)))
    with broken(OfflineDirNotInIsr):
        story.see(1, image=image_with_dirs(6, (C,)))


def test_so_is_who_has_to_leave_for_another_dir() -> None:
    story = stage(OfflineDirNotInIsr)
    story.see(1, image=image_with_dirs(5, (B, C)))
    with broken(OfflineDirNotInIsr):
        story.see(1, image=image_with_dirs(6, (B,), isr=(1,)))
