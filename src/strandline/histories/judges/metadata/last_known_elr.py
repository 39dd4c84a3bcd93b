"""I10: where ISR and ELR are empty, the last leader is kept as the last known eligible leader replica."""

from __future__ import annotations

from strandline.histories.judges.metadata.each_image import EachImage
from strandline.histories.quorum_observation import Violation
from strandline.metadata.image import MetadataImage, PartitionImage


class LastKnownElr(EachImage):
    def check(
        self, image: MetadataImage, where: str, topic: str, before: PartitionImage | None, after: PartitionImage
    ) -> None:
        if after.isr or after.elr:
            return
        if len(after.last_known_elr) != 1:
            raise Violation(f"{where}: no replica is in sync or eligible, and no last leader is known: {after}")
        # In between, another leader may have come and gone unseen: its epoch shows it.
        is_next = before is not None and before.has_leader and after.leader_epoch == before.leader_epoch + 1
        if before is not None and is_next and after.last_known_elr != (before.leader,):
            raise Violation(f"{where}: {before.leader} led last, and {after}")
