"""The target assignment of a group: which partitions each member is to have, by the assignor that most members ask for.

Always true: it is computed for the whole group at once, and belongs to one group epoch; a member whose target stays the
same costs no record.
"""

from __future__ import annotations

from strandline.coordinator.record import CoordinatorRecord
from strandline.groups import assignors
from strandline.groups.assignors.spec import GroupSpec, MemberSpec, TopicSpec
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.group_records import target_metadata_record, target_record
from strandline.groups.consumer.metadata_hash import broker_racks, topic_racks
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage


def may_compute(group: ConsumerGroup, assignment_interval_ms: int, now_ms: int) -> bool:
    """Not more often than the interval allows;
    at once if there is no target yet, or one by a clock that was ahead of ours.
    """
    last_ms = group.assignment_timestamp_ms
    return last_ms == 0 or assignment_interval_ms == 0 or not last_ms <= now_ms < last_ms + assignment_interval_ms


def target_records(
    group: ConsumerGroup, assignor_name: str, image: MetadataImage, now_ms: int
) -> list[CoordinatorRecord]:
    """What makes the target that of the group's epoch."""
    assigned = assignors.by_name(assignor_name).assign(_spec(group, image))
    records = [
        target_record(group.group_id, member_id, assigned.get(member_id, {}))
        for member_id in group.members
        if group.target_assignment.get(member_id) != assigned.get(member_id, {})
    ]
    records.append(target_metadata_record(group.group_id, group.group_epoch, now_ms))
    return records


def _spec(group: ConsumerGroup, image: MetadataImage) -> GroupSpec:
    members = {
        member_id: MemberSpec(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            subscribed_topic_ids=group.subscribed_topic_ids(member, image),
            assigned=group.target_assignment.get(member_id, {}),
        )
        for member_id, member in group.members.items()
    }
    racks = broker_racks(image)
    topics: dict[Uuid, TopicSpec] = {}
    for name in group.subscribed_topic_names:
        topic = image.topics.get(name)
        if topic is not None:
            topics[topic.topic_id] = TopicSpec(name, len(topic.partitions), topic_racks(topic, racks) if racks else ())
    return GroupSpec(members, topics)
