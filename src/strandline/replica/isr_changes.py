"""Which followers join the in-sync replicas, and which leave: what a leader proposes to the controller (rules B1, B2, B3).
The controller decides in `controller/alter_partition.py`; the leader takes the decision in `isr_state.py`.

Always true: a follower joins only with all that is committed and all that was there when this leader epoch began; nothing is
proposed while another proposal is pending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.replica.followers import UNKNOWN, FollowerProgress
from strandline.replica.isr_state import RECOVERED, ProposedIsr

if TYPE_CHECKING:
    from strandline.replica.leadership import Leadership


def expand(leadership: Leadership, now: float, *, fetching: int = UNKNOWN, refused: ProposedIsr | None = None) -> None:
    """Propose that those join the ISR that may, if there are any and no other proposal is pending.

    `fetching` is the follower that has just fetched. What is known of the others is older: one of them that had not caught up
    for long may have everything and still be silent, and would be put out again. `refused` is what the controller has just
    refused: the same is not proposed again before a fetch or the metadata says more.
    """
    isr, partition = leadership.isr, leadership.partition
    if isr.pending is not None:
        return
    log_end, lag_time_max_s = partition.log.log_end_offset, leadership.dependencies.lag_time_max_s
    joining = [
        follower
        for replica, follower in leadership.followers.items()
        if replica not in isr.isr
        and follower.log_end_offset >= partition.high_watermark
        and follower.log_end_offset >= leadership.start_offset
        and leadership.is_eligible(follower)
        and (replica == fetching or follower.is_caught_up(log_end, now, lag_time_max_s))
    ]
    if not joining:
        return
    reason = ", ".join(f"replica {f.replica_id} has everything up to {f.log_end_offset}" for f in joining)
    members = _with_epochs(leadership, isr.expanded([f.replica_id for f in joining]))
    if refused is not None and (members, isr.partition_epoch) == (refused.isr, refused.partition_epoch):
        return
    _propose(leadership, members, reason)


def shrink(leadership: Leadership, now: float) -> bool:
    """Propose that those leave that have been behind for too long; False if nothing is proposed."""
    isr, log_end = leadership.isr, leadership.partition.log.log_end_offset
    if isr.pending is not None:
        return False
    late = [follower for replica in isr.isr if (follower := _late(leadership, replica, log_end, now)) is not None]
    if not late:
        return False
    reason = ", ".join(
        f"replica {f.replica_id} is at {f.log_end_offset} of {log_end} and was not caught up for {now - f.caught_up_at:.1f} s"
        for f in late
    )
    _propose(leadership, _with_epochs(leadership, isr.shrunk({f.replica_id for f in late})), reason)
    return True


def _late(leadership: Leadership, replica: int, log_end: int, now: float) -> FollowerProgress | None:
    if replica == leadership.dependencies.node_id:
        return None
    follower = leadership.followers.get(replica) or FollowerProgress(replica)
    return None if follower.is_caught_up(log_end, now, leadership.dependencies.lag_time_max_s) else follower


def _with_epochs(leadership: Leadership, replicas: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    node_id, broker_epoch = leadership.dependencies.node_id, leadership.dependencies.broker_epoch
    return tuple(
        (replica, broker_epoch if replica == node_id else _epoch_of(leadership, replica)) for replica in replicas
    )


def _epoch_of(leadership: Leadership, replica: int) -> int:
    """Of a member that has not fetched from here yet none is known: should it restart, the controller takes it out of the
    ISR, and the partition epoch that this takes has our proposal refused."""
    follower = leadership.followers.get(replica)
    return UNKNOWN if follower is None else follower.broker_epoch


def _propose(leadership: Leadership, members: tuple[tuple[int, int], ...], reason: str) -> None:
    partition = leadership.partition
    proposal = ProposedIsr(
        partition.topic_id,
        partition.index,
        partition.state.leader_epoch,
        leadership.isr.partition_epoch,
        members,
        RECOVERED,
        reason,
    )
    leadership.isr.propose(proposal)
    leadership.dependencies.propose_isr(partition, proposal)
