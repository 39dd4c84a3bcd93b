"""B13: a replica in a log dir that its broker has not got any more is in no ISR; the broker's other replicas stay where
they are.

Where the dir of a replica is not known yet, nothing is said of it.
"""

from __future__ import annotations

from strandline.histories.judges.metadata.each_image import EachImage
from strandline.histories.quorum_observation import QuorumNodeState, QuorumObservation, Violation
from strandline.metadata.image import MetadataImage, PartitionImage

RESERVED = 100


class OfflineDirNotInIsr(EachImage):
    with_brokers = True

    def __init__(self) -> None:
        super().__init__()
        self._before = MetadataImage()

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        self._before = self._image
        super().changed(observed, node_id, before, after)

    def check(
        self, image: MetadataImage, where: str, topic: str, before: PartitionImage | None, after: PartitionImage
    ) -> None:
        if before is None or not after.directories or before.replicas != after.replicas:
            return
        for replica, directory in zip(after.replicas, after.directories, strict=True):
            was, broker = self._before.brokers.get(replica), image.brokers.get(replica)
            if was is None or broker is None or was.epoch != broker.epoch or was.log_dirs == broker.log_dirs:
                continue
            gone = set(was.log_dirs) - set(broker.log_dirs)
            if directory in gone and replica in after.isr:
                raise Violation(f"{where}: the log dir of {replica} is offline, and it is in sync: {after}")
            is_next = after.partition_epoch == before.partition_epoch + 1
            is_known = int.from_bytes(directory) >= RESERVED and directory in broker.log_dirs
            left = replica in before.isr and replica not in after.isr
            if is_next and is_known and left and not broker.fenced:
                raise Violation(f"{where}: the log dir of {replica} is online, and it is put out: {before}, {after}")
