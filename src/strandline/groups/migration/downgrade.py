"""Downgrade: a group of the consumer protocol becomes a classic one when its last member of that protocol goes.

Those who stay speak the classic protocol already. They become members of a classic group in the group epoch, and
rebalance unless each of them has what its target says. As with every classic group the memory is ahead of the log: the
rebalance has begun when the records are on their way. What is written of a group that is to rebalance is two
generations ahead of its members: should the coordinator be another before they have their new assignments, they join
again, also if they had joined the next one.

Always true: a member is assigned what it is responsible for, and may therefore still have, never what it only is to
get; if the records are refused, the group is what it was; a group without members is not downgraded: it becomes a
classic one when such a member joins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.errors import ErrorCode
from strandline.groups.classic import rebalance as classic_rebalance
from strandline.groups.classic.group import STABLE, ClassicGroup
from strandline.groups.classic.group_record import group_record
from strandline.groups.classic.member import ClassicMember
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.member import ConsumerGroupMember
from strandline.groups.migration import embedded_protocol, timeouts
from strandline.groups.migration.policy import policy
from strandline.groups.records import GroupMetadataValue
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard

REFUSALS = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.RECORD_LIST_TOO_LARGE)
"""Nothing was appended, and `done` hears of it before anything else happens."""

Done = Callable[[ErrorCode, Moment], CoordinatorResult | None]
"""What follows the downgrade, or its failure."""


def nothing_follows(code: ErrorCode, at: Moment) -> None:
    pass


def is_due(shard: GroupShard, group: ConsumerGroup, leaving: Collection[ConsumerGroupMember]) -> bool:
    """Whether the group is to be a classic one once these members are gone."""
    staying = _without(group, leaving)
    return bool(staying) and _may_be_classic(shard, staying, size=len(staying))


def is_due_with(shard: GroupShard, group: ConsumerGroup, replaced: ConsumerGroupMember) -> bool:
    """Whether the group is to be a classic one once this member speaks the classic protocol, which it did not."""
    if replaced.uses_classic_protocol:
        return False
    return _may_be_classic(shard, _without(group, [replaced]), size=len(group.members))


def _may_be_classic(shard: GroupShard, staying: Iterable[ConsumerGroupMember], size: int) -> bool:
    config = shard.dependencies.config
    return (
        all(member.uses_classic_protocol for member in staying)
        and policy(config).allows_downgrade
        and size <= config.group_max_size
    )


def downgrade(
    shard: GroupShard,
    group: ConsumerGroup,
    leaving: Collection[ConsumerGroupMember],
    at: Moment,
    done: Done = nothing_follows,
) -> CoordinatorResult:
    """These members are gone, and the rest is a classic group, which rebalances: their partitions have no owner."""
    return _result(shard, group, _without(group, leaving), at, rebalance=True, done=done)


def downgrade_with(
    shard: GroupShard,
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    at: Moment,
    *,
    rebalance: bool,
    done: Done = nothing_follows,
) -> CoordinatorResult:
    """This member speaks the classic protocol from now on, as all others do. `rebalance`: it wants other topics."""
    others = _without(group, [member])
    # Apache Kafka looks at the target's epoch alone; but a member that did not get there yet would never hear of its
    # target.
    is_settled = group.assignment_epoch == group.group_epoch and all(
        other.is_reconciled_to(group.assignment_epoch) for other in others
    )
    return _result(shard, group, [*others, member], at, rebalance=rebalance or not is_settled, done=done)


def _without(group: ConsumerGroup, leaving: Collection[ConsumerGroupMember]) -> list[ConsumerGroupMember]:
    gone = {member.member_id for member in leaving}
    return [member for member in group.members.values() if member.member_id not in gone]


def _result(
    shard: GroupShard,
    group: ConsumerGroup,
    staying: list[ConsumerGroupMember],
    at: Moment,
    *,
    rebalance: bool,
    done: Done,
) -> CoordinatorResult:
    classic = _classic_group(group, staying, shard.dependencies.image, at)
    record = group_record(classic)
    shard.groups[group.group_id] = classic
    for member_id in group.members:
        timeouts.cancel(shard, group.group_id, member_id)
    classic_rebalance.watch_sessions(shard, classic, at)
    if rebalance:
        assert isinstance(record.value, GroupMetadataValue)
        record = record._replace(value=replace(record.value, generation=classic.generation_id + 2))
        result = classic_rebalance.prepare_rebalance(shard, classic, at)
        assert result is None, "no member has joined yet"
    return CoordinatorResult(
        [*group.tombstones(), record], partial(_written, shard, group, classic, done), replayed=False
    )


def _written(
    shard: GroupShard, group: ConsumerGroup, classic: ClassicGroup, done: Done, code: ErrorCode, at: Moment
) -> CoordinatorResult | None:
    if code in REFUSALS and classic_rebalance.is_current(shard, classic):
        shard.groups[group.group_id] = group
    return done(code, at)


def _classic_group(
    group: ConsumerGroup, staying: list[ConsumerGroupMember], image: MetadataImage, at: Moment
) -> ClassicGroup:
    classic = ClassicGroup(
        group.group_id,
        at.wall_ms,
        state=STABLE,
        generation_id=group.group_epoch,
        protocol_type=embedded_protocol.PROTOCOL_TYPE,
        members=[_classic_member(member) for member in staying],
    )
    name = classic.protocol_name = classic.select_protocol()
    for member in staying:
        classic_member = classic.members[member.member_id]
        version = embedded_protocol.version(classic_member.metadata(name))
        classic_member.assignment = embedded_protocol.encode_assignment(_responsible_for(member), image, version)
    return classic


def _responsible_for(member: ConsumerGroupMember) -> dict[Uuid, frozenset[int]]:
    """Apache Kafka takes its target.
    Should the group be upgraded again before it has rebalanced, a partition had two owners.
    """
    found: dict[Uuid, frozenset[int]] = {}
    for partitions in (member.assigned_partitions, member.partitions_pending_revocation):
        for topic_id, epochs in partitions.items():
            found[topic_id] = found.get(topic_id, frozenset()) | epochs.keys()
    return found


def _classic_member(member: ConsumerGroupMember) -> ClassicMember:
    metadata = member.classic_member_metadata
    assert metadata is not None
    return ClassicMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=metadata.session_timeout_ms,
        protocol_type=embedded_protocol.PROTOCOL_TYPE,
        supported_protocols={protocol.name: protocol.metadata for protocol in metadata.supported_protocols},
    )
