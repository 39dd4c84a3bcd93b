"""AlterPartition: an ISR that a leader proposes, and what the controller makes of it (rule B4).

Always true: only the leader of the newest leader epoch, who knows the newest partition epoch, changes the ISR, and only to
active replicas; a proposal that is refused changes nothing; each is answered with the state that follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from strandline.controller.brokers import check_epoch
from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.leader_election import active_brokers
from strandline.controller.partition_change import RECOVERED, RECOVERING, PartitionTarget, change
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage, PartitionImage
from strandline.metadata.records import NO_LEADER_CHANGE, MetadataRecord
from strandline.metadata.replay import replay

ANY_EPOCH = -1
"""The broker epoch of a replica of which the leader, in an older version, does not tell it."""


class NewIsr(NamedTuple):
    """The ISR that a leader wants for one partition."""

    topic_id: Uuid
    partition_index: int
    leader_epoch: int
    partition_epoch: int
    isr: Sequence[tuple[int, int]]
    """Broker ids and broker epochs."""
    leader_recovery_state: int = RECOVERED


Answer = PartitionImage | ErrorCode
"""The partition as it is now, or why it is not as it was wanted."""


def alter(
    image: MetadataImage, broker_id: int, broker_epoch: int, wanted: Sequence[NewIsr], policy: ElectionPolicy
) -> tuple[list[MetadataRecord], list[Answer]]:
    """The records for all that may be, and the answer to each; STALE_BROKER_EPOCH if an older incarnation asks."""
    check_epoch(image, broker_id, broker_epoch)
    active = active_brokers(image)
    records: list[MetadataRecord] = []
    codes: list[ErrorCode] = []
    changed = set()
    for new in wanted:
        code = _refusal(image, broker_id, new)
        if (new.topic_id, new.partition_index) in changed:
            code = ErrorCode.INVALID_UPDATE_VERSION
        if not code:
            topic = image.topics_by_id[new.topic_id]
            isr = tuple(replica for replica, _ in new.isr)
            target = PartitionTarget(isr=isr, leader_recovery_state=new.leader_recovery_state)
            terms = policy.terms(topic.name, active)
            record = change(topic.topic_id, new.partition_index, topic.partitions[new.partition_index], target, terms)
            if record is not None:
                records.append(record)
                changed.add((new.topic_id, new.partition_index))
                if record.leader not in (NO_LEADER_CHANGE, broker_id):
                    # This ISR completed a reassignment after which the sender is not a replica any more.
                    code = ErrorCode.NEW_LEADER_ELECTED
        codes.append(code)
    after = replay(image, records, image.end_offset + len(records), image.epoch)
    return records, [
        code or after.topics_by_id[new.topic_id].partitions[new.partition_index]
        for new, code in zip(wanted, codes, strict=True)
    ]


def _refusal(image: MetadataImage, broker_id: int, new: NewIsr) -> ErrorCode:
    topic = image.topics_by_id.get(new.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not 0 <= new.partition_index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partition = topic.partitions[new.partition_index]
    isr = [replica for replica, _ in new.isr]
    # The order is Kafka's. A leader that knows a newer epoch than we do has it from a newer controller.
    if new.leader_epoch > partition.leader_epoch or new.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if new.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if new.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas) or broker_id not in isr:
        return ErrorCode.INVALID_REQUEST
    if new.leader_recovery_state not in (RECOVERED, RECOVERING):
        return ErrorCode.INVALID_REQUEST
    if new.leader_recovery_state == RECOVERING and (len(isr) > 1 or partition.leader_recovery_state == RECOVERED):
        return ErrorCode.INVALID_REQUEST
    if not all(_is_eligible(image, replica, epoch) for replica, epoch in new.isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _is_eligible(image: MetadataImage, broker_id: int, broker_epoch: int) -> bool:
    """Active, and in the incarnation that the leader saw fetching: another may not have what that one had."""
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.active and broker_epoch in (ANY_EPOCH, broker.epoch)
