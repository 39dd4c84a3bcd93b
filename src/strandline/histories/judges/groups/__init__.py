"""Properties of groups: offsets that stay committed, partitions that have one owner, coordinators that follow each
other.

Those of exchanges and shards are judged as they happen, those of what members were given at the end.
"""

from __future__ import annotations

from strandline.histories.groups.observation import GroupJudge
from strandline.histories.judges.groups.acknowledged_is_logged import AcknowledgedIsLogged
from strandline.histories.judges.groups.answers_committed import AnswersCommitted
from strandline.histories.judges.groups.committed_goes_back import CommittedGoesBack
from strandline.histories.judges.groups.deleted_is_tombstoned import DeletedIsTombstoned
from strandline.histories.judges.groups.fenced_instance import FencedInstance
from strandline.histories.judges.groups.one_coordinator import OneCoordinator
from strandline.histories.judges.groups.stale_commit import StaleCommit
from strandline.histories.judges.groups.two_owners import TwoOwners
from strandline.histories.judges.invariants import GroupInvariants

GROUPS: tuple[type[GroupJudge], ...] = (
    OneCoordinator,
    AcknowledgedIsLogged,
    CommittedGoesBack,
    TwoOwners,
    StaleCommit,
    AnswersCommitted,
    FencedInstance,
    DeletedIsTombstoned,
)


def group_judges() -> list[GroupJudge]:
    return [judge() for judge in (*GROUPS, GroupInvariants)]
