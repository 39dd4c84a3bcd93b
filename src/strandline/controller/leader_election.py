"""The election of a partition's leader: from its ISR, from the eligible leader replicas (ELR), or uncleanly (B7 to B10).

`partition_change.py` asks for it in each change of a partition; when brokers come and go is in `broker_changes.py`.

Always true: a leader that may stay stays, unless the preferred one is asked for; a replica that is not active is not elected; a
replica outside of ISR and ELR is elected only uncleanly, or as the last leader that is known.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

from strandline.controller.placement import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage, PartitionImage
from strandline.metadata.records import NO_LEADER

Replicas = tuple[int, ...]


class Election(enum.Enum):
    ONLINE = enum.auto()
    """A replica that holds all committed records."""
    PREFERRED = enum.auto()
    """The same, and the first replica before the present leader."""
    UNCLEAN = enum.auto()
    """The same, and if there is none any active replica."""


class Terms(NamedTuple):
    """What a change has to respect."""

    active: Mapping[int, tuple[Uuid, ...]]
    """The brokers that may lead, as the event leaves them, with their log dirs that are online."""
    min_isr: int
    """min.insync.replicas of the topic; for a partition of fewer replicas, all of them are enough."""
    elr_enabled: bool
    election: Election = Election.ONLINE

    def enough(self, replicas: Replicas) -> int:
        """How many in sync are enough to commit."""
        return min(self.min_isr, len(replicas))


def active_brokers(image: MetadataImage, *, but: int | None = None) -> dict[int, tuple[Uuid, ...]]:
    """The brokers that may lead, except one of which the image does not know yet that it no longer may."""
    return {
        broker_id: broker.log_dirs
        for broker_id, broker in image.brokers.items()
        if broker_id != but and not broker.fenced and not broker.in_controlled_shutdown
    }


def eligible_leader_replicas(
    partition: PartitionImage, isr: Replicas, replicas: Replicas, lost: Replicas, terms: Terms
) -> Replicas:
    """The ELR: who left the ISR since it became smaller than min.insync.replicas (B10). Nothing is committed with fewer."""
    if not terms.elr_enabled:
        # What was eligible stays so until there is a leader again.
        return () if isr else partition.elr
    if len(isr) >= terms.enough(replicas):
        return ()
    was_isr, was_elr = partition.isr, partition.elr
    return tuple(
        replica
        for replica in replicas
        if (replica in was_isr or replica in was_elr) and replica not in isr and replica not in lost
    )


def elect_leader(
    partition: PartitionImage, isr: Replicas, elr: Replicas, replicas: Replicas, terms: Terms
) -> tuple[int, bool]:
    """The leader, and whether it may lack committed records."""
    valid = isr or elr
    leader, preferred = partition.leader, replicas[0]
    if terms.election is Election.PREFERRED and preferred in valid and _may_lead(partition, preferred, terms.active):
        return preferred, False
    if leader in isr and _may_lead(partition, leader, terms.active):
        return leader, False
    for replica in replicas:
        if replica in valid and _may_lead(partition, replica, terms.active):
            return replica, False
    if terms.elr_enabled and not valid and len(partition.last_known_elr) == 1:
        (last,) = partition.last_known_elr
        if last in replicas and _may_lead(partition, last, terms.active):
            return last, True
    if terms.election is Election.UNCLEAN:
        for replica in replicas:
            if _may_lead(partition, replica, terms.active):
                return replica, True
    return NO_LEADER, False


def _may_lead(partition: PartitionImage, replica: int, active: Mapping[int, tuple[Uuid, ...]]) -> bool:
    """Whether its broker is active and its log dir, where both are known, is online."""
    online = active.get(replica)
    if online is None or replica not in partition.replicas:
        return False
    if not online or not partition.directories:
        return True
    directory = partition.directories[partition.replicas.index(replica)]
    return directory in online or directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)
