"""B12, B13: a broker is unfenced only once this incarnation of it has applied its own registration."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation
from strandline.metadata.image import MetadataImage


class UnfencedHasCaughtUp(QuorumJudge):
    def __init__(self) -> None:
        self._image = MetadataImage()
        self._applied: dict[int, int] = {}
        """By node: how much of the metadata it has had, in whichever life."""

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        image = after.image
        if image.end_offset > self._applied.get(node_id, 0):
            self._applied[node_id] = image.end_offset
        if image.end_offset <= self._image.end_offset:
            return
        known, self._image = self._image.brokers, image
        if known is image.brokers:
            return
        for broker_id, broker in image.brokers.items():
            was = known.get(broker_id)
            if broker.fenced or (was is not None and not was.fenced and was.incarnation_id == broker.incarnation_id):
                continue
            if self._applied.get(broker_id, 0) <= broker.epoch:
                raise Violation(
                    f"{broker_id} is unfenced in epoch {broker.epoch}, and has applied {self._applied.get(broker_id, 0)}"
                )
