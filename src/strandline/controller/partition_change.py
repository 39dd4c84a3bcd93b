"""One partition's change: who leads it, who is in sync, who could lead it without loss.

Every decision about a partition that exists goes through `change`, in this order: a reassignment that can be completed is
completed (rule B15), the eligible leader replicas follow from the ISR (B10) and a leader is elected (B7 to B9; both in
`leader_election.py`), and what differs from before becomes one record.

Always true: the leader is in the ISR, and a leader that may stay stays; a replica that is not active neither leads nor is
elected; ISR and ELR have no member in common and none outside of the replicas; the leader epoch rises with each election and
each replica that is removed, the partition epoch with every record (B6; both are counted by replay, which raises the leader
epoch whenever a record names a leader, also the same one again).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from strandline.controller.leader_election import Replicas, Terms, elect_leader, eligible_leader_replicas
from strandline.controller.placement import MIGRATING_DIRECTORY
from strandline.ids import Uuid
from strandline.metadata.image import PartitionImage
from strandline.metadata.records import NO_LEADER, NO_LEADER_CHANGE, PartitionChangeRecord
from strandline.metadata.sharing import unfrozen

RECOVERED, RECOVERING, NO_CHANGE = 0, 1, -1
"""Kafka's LeaderRecoveryState: RECOVERING from an unclean election until the leader says that it is done."""


class PartitionTarget(NamedTuple):
    """What is to become of a partition; None leaves it."""

    isr: Replicas | None = None
    replicas: Replicas | None = None
    adding: Replicas | None = None
    removing: Replicas | None = None
    directories: Mapping[int, Uuid] = {}
    """Of replicas that get another one."""
    leader_recovery_state: int | None = None
    lost: Replicas = ()
    """Replicas that may have lost records: not eligible any more."""


AS_IT_IS = PartitionTarget()


def change(
    topic_id: Uuid, index: int, partition: PartitionImage, target: PartitionTarget, terms: Terms
) -> PartitionChangeRecord | None:
    """The record that brings a partition to `target`; None if there is nothing to change."""
    isr = partition.isr if target.isr is None else target.isr
    replicas = partition.replicas if target.replicas is None else target.replicas
    adding = partition.adding_replicas if target.adding is None else target.adding
    removing = partition.removing_replicas if target.removing is None else target.removing
    if (adding or removing) and (kept := _completed(isr, replicas, adding, removing, terms)):
        isr, replicas = kept
        adding = removing = ()

    elr = eligible_leader_replicas(partition, isr, replicas, target.lost, terms)
    leader, unclean = elect_leader(partition, isr, elr, replicas, terms)
    recovery = partition.leader_recovery_state if target.leader_recovery_state is None else target.leader_recovery_state
    if unclean:
        isr, elr, recovery = (leader,), (), RECOVERING
    elif leader in elr:
        isr, elr = (leader,), _but(leader, elr) if terms.elr_enabled and terms.enough(replicas) > 1 else ()
    if not isr and not terms.elr_enabled:
        # Without an ELR it is the ISR that keeps the name of the last one that had everything.
        isr = partition.isr
    last_known = _last_known(partition, isr, elr, leader, terms.elr_enabled)
    directories = _directories(partition, replicas, target.directories)
    named = leader != partition.leader or unclean or not set(partition.replicas) <= set(replicas)

    before = partition
    if (
        not named
        and (isr, elr, last_known) == (before.isr, before.elr, before.last_known_elr)
        and (replicas, adding, removing) == (before.replicas, before.adding_replicas, before.removing_replicas)
        and (directories, recovery) == (before.directories, before.leader_recovery_state)
    ):
        return None
    return PartitionChangeRecord(
        topic_id=topic_id,
        partition_id=index,
        isr=_new(isr, before.isr),
        leader=leader if named else NO_LEADER_CHANGE,
        replicas=_new(replicas, before.replicas),
        removing_replicas=_new(removing, before.removing_replicas),
        adding_replicas=_new(adding, before.adding_replicas),
        leader_recovery_state=NO_CHANGE if recovery == before.leader_recovery_state else recovery,
        directories=None if directories == before.directories else directories,
        eligible_leader_replicas=_new(elr, before.elr),
        last_known_elr=_new(last_known, before.last_known_elr),
    )


def likeness(partition: PartitionImage) -> Hashable:
    """All that `change` looks at. A cluster has few sets of replicas and many partitions: those that are alike become alike,
    and the change of one is that of all (`addressed`)."""
    return (
        partition.replicas,
        partition.isr,
        partition.leader,
        partition.directories,
        partition.elr,
        partition.last_known_elr,
        partition.adding_replicas,
        partition.removing_replicas,
        partition.leader_recovery_state,
    )


_Record = unfrozen(PartitionChangeRecord)


def addressed(record: PartitionChangeRecord, topic_id: Uuid, index: int) -> PartitionChangeRecord:
    """The same change, of another partition."""
    other = object.__new__(_Record)
    other.topic_id, other.partition_id = topic_id, index
    other.isr, other.leader, other.replicas = record.isr, record.leader, record.replicas
    other.removing_replicas, other.adding_replicas = record.removing_replicas, record.adding_replicas
    other.leader_recovery_state, other.directories = record.leader_recovery_state, record.directories
    other.eligible_leader_replicas, other.last_known_elr = record.eligible_leader_replicas, record.last_known_elr
    other.__class__ = PartitionChangeRecord
    return other  # type: ignore[no-any-return]


def _new(value: Replicas, before: Replicas) -> Replicas | None:
    return None if value == before else value


def _but(replica: int, replicas: Replicas) -> Replicas:
    return tuple(other for other in replicas if other != replica)


def _completed(
    isr: Replicas, replicas: Replicas, adding: Replicas, removing: Replicas, terms: Terms
) -> tuple[Replicas, Replicas] | None:
    """ISR and replicas after a reassignment, if it may be completed: all that are added are in sync, and what stays in
    sync is enough without those that go (B15)."""
    new_isr = tuple(replica for replica in isr if replica not in removing)
    new_replicas = tuple(replica for replica in replicas if replica not in removing)
    if not new_isr or any(replica not in new_isr for replica in adding):
        return None
    if len(adding) < len(removing) and len(new_isr) < len(new_replicas):
        return None
    if len(new_isr) < len(isr) and len(new_isr) < terms.enough(new_replicas):
        return None
    return new_isr, new_replicas


def _last_known(partition: PartitionImage, isr: Replicas, elr: Replicas, leader: int, elr_enabled: bool) -> Replicas:
    """The last leader, kept from when there is none until there is one again (I10)."""
    if leader != NO_LEADER:
        return ()
    if partition.last_known_elr or not elr_enabled:
        return partition.last_known_elr
    if partition.has_leader:
        return (partition.leader,)
    # The ELR was switched on, or cleared, without a leader: then the last one of the ISR or ELR stands for the last leader.
    return () if isr or elr else (partition.isr or partition.elr)[:1]


def _directories(partition: PartitionImage, replicas: Replicas, given: Mapping[int, Uuid]) -> tuple[Uuid, ...]:
    """The log dirs of the replicas, in their order; () if none is known."""
    if replicas == partition.replicas and not given:
        return partition.directories
    known = {**dict(zip(partition.replicas, partition.directories, strict=False)), **given}
    return tuple(known.get(replica, MIGRATING_DIRECTORY) for replica in replicas) if known else ()
