"""B14: a broker that may stop leads nothing; if it had to hand over, every active broker knows of it.

So it is not let go in the very step that takes its leaderships from it.
"""

from __future__ import annotations

from dataclasses import replace

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation
from strandline.histories.wire import BROKER_HEARTBEAT, QuorumMessage
from strandline.metadata.image import MetadataImage

AT_ONCE_S = 1.0
"""A heartbeat that was on its way for longer may have found that the session was over."""


class StoppedWithoutLeading(QuorumJudge):
    def __init__(self) -> None:
        self._applied: dict[int, int] = {}
        """By node: how much of the metadata it has had, in whichever life."""
        self._image = MetadataImage()
        self._cut_short: dict[int, tuple[int, float]] = {}
        """By broker: the epoch in which it was fenced while it led, and when."""
        self._asked_at: dict[int, float] = {}

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        end_offset = after.image.end_offset
        if end_offset > self._applied.get(node_id, 0):
            self._applied[node_id] = end_offset
        known, image = self._image, after.image
        if image.end_offset <= known.end_offset:
            return
        self._image = image
        if known.brokers is image.brokers:
            return
        for broker_id, broker in image.brokers.items():
            was = known.brokers.get(broker_id)
            if was is None or was.epoch != broker.epoch or not was.active or not broker.fenced:
                continue
            if _led(_still_there(known, image), broker_id):
                self._cut_short[broker_id] = (broker.epoch, observed.now())

    def sent(self, observed: QuorumObservation, sent: QuorumMessage) -> None:
        if sent.api_key != BROKER_HEARTBEAT:
            return
        if not sent.response:
            if sent.wants_to_stop:
                self._asked_at[sent.candidate_id] = observed.now()
            return
        if not sent.granted:
            return
        broker_id, image = sent.candidate_id, observed.nodes[sent.source].image
        epoch, fenced_at = self._cut_short.get(broker_id, (-1, 0.0))
        asked_at = self._asked_at.get(broker_id, fenced_at)
        if epoch == sent.broker_epoch and asked_at < fenced_at and observed.now() - asked_at < AT_ONCE_S:
            raise Violation(f"lets {broker_id} stop in the very step that takes its leaderships from it")
        if led := _led(image, broker_id):
            raise Violation(f"lets {broker_id} stop, which leads {led}")
        broker = image.brokers.get(broker_id)
        if broker is None or not broker.in_controlled_shutdown:
            return
        for other in image.brokers.values():
            seen = observed.nodes.get(other.broker_id)
            if not other.active or seen is None or seen.image.end_offset < self._applied[other.broker_id]:
                continue
            if led := _led(seen.image, broker_id):
                raise Violation(f"lets {broker_id} stop, and {other.broker_id} still believes that it leads {led}")


def _still_there(known: MetadataImage, image: MetadataImage) -> MetadataImage:
    """Without the topics that were deleted by another decision of the same turn: no broker has to take those over
    (seed 201977)."""
    topics = {name: topic for name, topic in known.topics.items() if topic.topic_id in image.topics_by_id}
    return replace(known, topics=topics)


def _led(image: MetadataImage, broker_id: int) -> list[str]:
    return [
        f"{name}-{index}"
        for name, topic in image.topics.items()
        for index, partition in enumerate(topic.partitions)
        if partition.leader == broker_id
    ]
