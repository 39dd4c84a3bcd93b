"""B1, B4 (KIP-903): who joins the ISR is the incarnation of its broker that fetched, not one that has restarted since.

The leader's proposal names the broker epoch under which it saw each member fetch. The controller may do it only while
it knows the broker by that very epoch: a broker that came back under a new one may have lost what the old one had.
"""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus
from strandline.metadata.image import MetadataImage, PartitionImage
from strandline.replica.isr_state import ProposedIsr

UNKNOWN = -1


class InSyncIncarnation(ReplicaJudge):
    def __init__(self) -> None:
        self._proposals: dict[tuple[Key, int, int], list[ProposedIsr]] = {}
        """By partition, leader epoch and the partition epoch that they would make."""

    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        proposed = after.proposed_isr
        if proposed is not None and (before is None or before.proposed_isr is not proposed):
            self._proposals.setdefault((key, proposed.leader_epoch, proposed.partition_epoch + 1), []).append(proposed)

    def metadata(
        self,
        observed: ReplicaObservation,
        key: Key,
        before: PartitionImage | None,
        after: PartitionImage,
        image: MetadataImage,
    ) -> None:
        proposals = self._proposals.get((key, after.leader_epoch, after.partition_epoch), ())
        granted = [proposed for proposed in proposals if set(proposed.replicas) == set(after.isr)]
        stood = () if before is None else before.isr
        if granted and not any(self._is_sound(proposed, stood, image) for proposed in granted):
            known = {replica: image.brokers[replica].epoch for replica in after.isr if replica in image.brokers}
            raise Violation(f"ISR by broker epochs {dict(granted[-1].isr)}, and the controller knows {known}: {after}")

    @staticmethod
    def _is_sound(proposed: ProposedIsr, stood: tuple[int, ...], image: MetadataImage) -> bool:
        for replica, epoch in proposed.isr:
            broker = image.brokers.get(replica)
            if broker is None or (epoch != broker.epoch and (epoch != UNKNOWN or replica not in stood)):
                return False
        return True
