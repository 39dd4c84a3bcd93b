"""B1, B4 (KIP-903): who joins the ISR is the incarnation of its broker that fetched, not one that has restarted since.

The leader's wish names the broker epoch under which it saw each member fetch. The controller may do it only while it knows the
broker by that very epoch: a broker that came back under a new one may have lost what the old one had.
"""

from __future__ import annotations

from strandline.histories.replica_sight import Key, Replica, ReplicaJudge, ReplicaSight
from strandline.histories.sight import Violation
from strandline.metadata.image import MetadataImage, PartitionImage
from strandline.replica.isr import ProposedIsr

UNKNOWN = -1


class InSyncIncarnation(ReplicaJudge):
    def __init__(self) -> None:
        self._wishes: dict[tuple[Key, int, int], list[ProposedIsr]] = {}
        """By partition, leader epoch and the partition epoch that they would make."""

    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        wish = after.wish
        if wish is not None and (before is None or before.wish is not wish):
            self._wishes.setdefault((key, wish.leader_epoch, wish.partition_epoch + 1), []).append(wish)

    def metadata(
        self, sight: ReplicaSight, key: Key, before: PartitionImage | None, after: PartitionImage, image: MetadataImage
    ) -> None:
        wishes = self._wishes.get((key, after.leader_epoch, after.partition_epoch), ())
        granted = [wish for wish in wishes if set(wish.replicas) == set(after.isr)]
        stood = () if before is None else before.isr
        if granted and not any(self._is_sound(wish, stood, image) for wish in granted):
            known = {replica: image.brokers[replica].epoch for replica in after.isr if replica in image.brokers}
            raise Violation(f"ISR by broker epochs {dict(granted[-1].isr)}, and the controller knows {known}: {after}")

    @staticmethod
    def _is_sound(wish: ProposedIsr, stood: tuple[int, ...], image: MetadataImage) -> bool:
        for replica, epoch in wish.isr:
            broker = image.brokers.get(replica)
            if broker is None or (epoch != broker.epoch and (epoch != UNKNOWN or replica not in stood)):
                return False
        return True
