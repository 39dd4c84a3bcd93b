"""B14: a broker that may stop leads nothing; if it had to hand over, every active broker knows of it."""

from __future__ import annotations

from strandline.histories.sight import Judge, Seen, Sight, Violation
from strandline.histories.wire import BROKER_HEARTBEAT, Sent
from strandline.metadata.image import MetadataImage


class StoppedWithoutLeading(Judge):
    def __init__(self) -> None:
        self._applied: dict[int, int] = {}
        """By node: how much of the metadata it has had, in whichever life."""

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        end_offset = after.image.end_offset
        if end_offset > self._applied.get(node_id, 0):
            self._applied[node_id] = end_offset

    def sent(self, sight: Sight, sent: Sent) -> None:
        if sent.api_key != BROKER_HEARTBEAT or not sent.granted:
            return
        broker_id, image = sent.candidate_id, sight.nodes[sent.source].image
        if led := _led(image, broker_id):
            raise Violation(f"lets {broker_id} stop, which leads {led}")
        broker = image.brokers.get(broker_id)
        if broker is None or not broker.in_controlled_shutdown:
            return
        for other in image.brokers.values():
            seen = sight.nodes.get(other.broker_id)
            if not other.active or seen is None or seen.image.end_offset < self._applied[other.broker_id]:
                continue
            if led := _led(seen.image, broker_id):
                raise Violation(f"lets {broker_id} stop, and {other.broker_id} still believes that it leads {led}")


def _led(image: MetadataImage, broker_id: int) -> list[str]:
    return [
        f"{name}-{index}"
        for name, topic in image.topics.items()
        for index, partition in enumerate(topic.partitions)
        if partition.leader == broker_id
    ]
