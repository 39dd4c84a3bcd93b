"""What a partition's leader knows beside its log: its epoch, its followers, the in-sync replicas.

Always true: the high watermark it allows never passes the log end of a replica that may be in sync, nor of one that is about to be
(rule A1), and stays where it is while fewer than `min.insync.replicas` are in sync (rule A2). A follower joins only with all that
is committed and all that was there when this epoch began, fetched in this epoch by the incarnation that the controller knows (rule
B1); it leaves when it has not been level for `replica.lag.time.max.ms` (rule B2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.metadata.image import PartitionImage
from strandline.metadata.incarnations import Incarnation
from strandline.replica.followers import UNKNOWN, FollowerProgress
from strandline.replica.isr import RECOVERED, Isr, IsrAnswer, ProposedIsr


class Brokers(Protocol):
    """The cluster's brokers, as this node's metadata has them."""

    def is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        """May join an ISR: unfenced, not stopping, and this is its newest incarnation (-1: it does not say)."""

    def is_alive(self, broker_id: int) -> bool: ...

    def incarnation(self, broker_id: int, broker_epoch: int) -> Incarnation:
        """Which incarnation of that broker says this epoch."""


class Leadership:
    def __init__(
        self,
        node_id: int,
        topic_id: Uuid,
        index: int,
        state: PartitionImage,
        start_offset: int,
        brokers: Brokers,
        lag_time_max_s: float,
        now: float,
    ) -> None:
        self.node_id = node_id
        self.leader_epoch = state.leader_epoch
        self.start_offset = start_offset
        """Where this leader epoch begins: what came before was somebody else's to commit."""
        self.isr = Isr(state.isr, state.partition_epoch)
        self.followers: dict[int, FollowerProgress] = {}
        self._topic_id = topic_id
        self._index = index
        self._brokers = brokers
        self._lag_time_max_s = lag_time_max_s
        self._recount(state, now)

    def renew(self, state: PartitionImage, log_end: int, now: float) -> None:
        """The metadata has news of a partition that this node leads, perhaps in a new epoch."""
        if state.leader_epoch > self.leader_epoch:
            if state.leader_epoch > self.leader_epoch + 1:
                # Somebody else led in between, of whom we never heard: what the followers had then may be cut by now.
                self.followers = {}
            self.leader_epoch = state.leader_epoch
            self.start_offset = log_end
            # One that is not in sync may have been taken away and put back since, with an empty log.
            self.followers = {replica: follower for replica, follower in self.followers.items() if replica in state.isr}
            for follower in self.followers.values():
                follower.begin_epoch(log_end, now, in_sync=True)
        if state.partition_epoch > self.isr.partition_epoch:
            # At the same one nothing can have changed, and a proposal that is under way stays so.
            before = self.isr.isr
            self.isr.commit(state.isr, state.partition_epoch)
            self._give_time(before, now)
        self._recount(state, now)

    def _recount(self, state: PartitionImage, now: float) -> None:
        before = self.followers
        self.followers = {}
        for replica in state.replicas:
            if replica != self.node_id:
                caught_up_at = now if replica in state.isr else float("-inf")
                self.followers[replica] = before.get(replica) or FollowerProgress(replica, caught_up_at=caught_up_at)

    # The high watermark

    def high_watermark(self, local_end: int, high_watermark: int, min_isr: int, now: Callable[[], float]) -> int:
        """How far it may go: everything below is on every replica that is in sync, or may be, or is about to be."""
        isr = self.isr
        if len(isr.isr) < min_isr:
            return high_watermark
        maximal = isr.maximal
        reached = local_end
        for replica, follower in self.followers.items():
            end = follower.log_end_offset
            if end < reached and (replica in maximal or self._is_about_to_join(follower, local_end, now)):
                reached = end
        return max(reached, high_watermark)

    def _is_about_to_join(self, follower: FollowerProgress, local_end: int, now: Callable[[], float]) -> bool:
        """If the watermark ran on ahead of one that is nearly level, it might never catch up with it."""
        if follower.log_end_offset == UNKNOWN or not self._is_eligible(follower):
            return False
        return follower.is_caught_up(local_end, now(), self._lag_time_max_s)

    def _is_eligible(self, follower: FollowerProgress) -> bool:
        return self._brokers.is_eligible(follower.replica_id, follower.broker_epoch)

    def low_watermark(self, log_start: int) -> int:
        """Every live replica has deleted what is below."""
        starts = [f.log_start_offset for f in self.followers.values() if self._brokers.is_alive(f.replica_id)]
        return min([log_start, *starts])

    # Joining and leaving

    def expansion(
        self,
        high_watermark: int,
        log_end: int,
        broker_epoch: int,
        now: float,
        fetching: int = UNKNOWN,
        refused: ProposedIsr | None = None,
    ) -> ProposedIsr | None:
        """The proposal that those who may join the ISR, if there are any and no other proposal is under way.

        `fetching` is the follower that has just fetched. What is known of the others is older: one of them that was not level for
        long may have everything and still be silent, and would be put out again. `refused` is what the controller has just refused:
        the same is not asked for again before a fetch or the metadata says more.
        """
        isr = self.isr
        if isr.pending is not None:
            return None
        joining = [
            follower
            for replica, follower in self.followers.items()
            if replica not in isr.isr
            and follower.log_end_offset >= high_watermark
            and follower.log_end_offset >= self.start_offset
            and self._is_eligible(follower)
            and (replica == fetching or follower.is_caught_up(log_end, now, self._lag_time_max_s))
        ]
        if not joining:
            return None
        reason = ", ".join(f"replica {f.replica_id} has everything up to {f.log_end_offset}" for f in joining)
        members = self._with_epochs(isr.expanded([f.replica_id for f in joining]), broker_epoch)
        if refused is not None and (members, isr.partition_epoch) == (refused.isr, refused.partition_epoch):
            return None
        return self._propose(members, reason)

    def answered(self, proposal: ProposedIsr, answer: IsrAnswer | ErrorCode, now: float) -> bool:
        """Take the controller's answer to a proposal; True if the same proposal must be sent again."""
        before = self.isr.isr
        is_to_be_sent = self.isr.answered(proposal, answer, self.leader_epoch)
        self._give_time(before, now)
        return is_to_be_sent

    def _give_time(self, isr_before: tuple[int, ...], now: float) -> None:
        """Who is in the ISR now, and was not, has the whole lag time before it has to be level."""
        for replica in self.isr.isr:
            if replica not in isr_before and replica in self.followers:
                self.followers[replica].joined(now)

    def shrinking(self, log_end: int, broker_epoch: int, now: float) -> ProposedIsr | None:
        """The proposal that those leave the ISR who have not been level for too long, if there are any."""
        isr = self.isr
        if isr.pending is not None:
            return None
        late = [follower for replica in isr.isr if (follower := self._late(replica, log_end, now)) is not None]
        if not late:
            return None
        reason = ", ".join(
            f"replica {f.replica_id} is at {f.log_end_offset} of {log_end} and was not caught up for {now - f.caught_up_at:.1f} s"
            for f in late
        )
        return self._propose(self._with_epochs(isr.shrunk({f.replica_id for f in late}), broker_epoch), reason)

    def _late(self, replica: int, log_end: int, now: float) -> FollowerProgress | None:
        if replica == self.node_id:
            return None
        follower = self.followers.get(replica) or FollowerProgress(replica)
        return None if follower.is_caught_up(log_end, now, self._lag_time_max_s) else follower

    def _with_epochs(self, replicas: tuple[int, ...], broker_epoch: int) -> tuple[tuple[int, int], ...]:
        return tuple(
            (replica, broker_epoch if replica == self.node_id else self._epoch_of(replica)) for replica in replicas
        )

    def _propose(self, members: tuple[tuple[int, int], ...], reason: str) -> ProposedIsr:
        proposal = ProposedIsr(
            self._topic_id, self._index, self.leader_epoch, self.isr.partition_epoch, members, RECOVERED, reason
        )
        self.isr.propose(proposal)
        return proposal

    def _epoch_of(self, replica: int) -> int:
        """Of a member that has not fetched from here yet none is known: should it restart, the controller takes it out of the
        ISR, and the partition epoch that this takes has our proposal refused."""
        follower = self.followers.get(replica)
        return UNKNOWN if follower is None else follower.broker_epoch

    # Reading from followers

    def can_serve(self, replica: int, offset: int) -> bool:
        """Whether a consumer at `offset` may be sent to that follower (rule A16)."""
        follower = self.followers.get(replica)
        return (
            follower is not None
            and replica in self.isr.isr
            and self._brokers.is_alive(replica)
            and UNKNOWN < follower.log_start_offset <= offset <= follower.log_end_offset
        )
