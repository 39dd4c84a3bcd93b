"""What a partition's leader knows beside its log, and decides: where its epoch begins, its followers, the in-sync replicas.

Always true: the high watermark that it allows never passes the log end of a replica that may be in sync, nor of one that is
about to be (rule A1), and stays where it is while fewer than `min.insync.replicas` are in sync (rule A2). A follower joins only
with all that is committed and all that was there when this epoch began, fetched in this epoch by the incarnation that the
controller knows (rule B1); it leaves when it has not caught up within `replica.lag.time.max.ms` (rule B2). A leader epoch begins
at the log end even while it has no record (rule A12). Who joins or leaves the ISR is decided in `isr_changes.py`; what is refused
while there are too few in sync, in `partition.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.incarnations import Incarnation
from strandline.replica import isr_changes
from strandline.replica.dependencies import PartitionDependencies
from strandline.replica.followers import NEVER, UNKNOWN, FollowerProgress
from strandline.replica.isr_state import Isr, IsrAnswer, ProposedIsr
from strandline.wire.fetch import FetchPartition

if TYPE_CHECKING:
    from strandline.replica.partition import Partition


class Leadership:
    """The role of a partition that this node leads, from when it begins to lead until another node does."""

    __slots__ = ("began_s", "dependencies", "followers", "isr", "partition", "start_offset")

    def __init__(self, partition: Partition, dependencies: PartitionDependencies) -> None:
        state = partition.state
        self.partition = partition
        self.dependencies = dependencies
        self.start_offset = partition.log.log_end_offset
        """Where this leader epoch begins: what came before was another leader's to commit."""
        self.began_s = dependencies.now()
        """When this epoch began here, on the monotonic clock."""
        self.isr = Isr(state.isr, state.partition_epoch)
        self.followers: dict[int, FollowerProgress] = {}
        self._recount(dependencies.now())

    @property
    def age_ms(self) -> float:
        """How long this epoch lasts."""
        return (self.dependencies.now() - self.began_s) * 1000

    def renew(self, epoch_before: int) -> None:
        """Take the partition's newer metadata, perhaps with a new epoch, in which this node goes on leading."""
        state, log_end = self.partition.state, self.partition.log.log_end_offset
        now = self.dependencies.now()
        if state.leader_epoch > epoch_before:
            if state.leader_epoch > epoch_before + 1:
                # Another node led in between, of which we never heard: what the followers had then may be cut by now.
                self.followers = {}
            self.start_offset = log_end
            self.began_s = now
            # One that is not in sync may have been taken away and put back since, with an empty log.
            self.followers = {replica: follower for replica, follower in self.followers.items() if replica in state.isr}
            for follower in self.followers.values():
                follower.begin_epoch(log_end, now, in_sync=True)
        if state.partition_epoch > self.isr.partition_epoch:
            # At the same one nothing can have changed, and a pending proposal is kept.
            before = self.isr.isr
            self.isr.commit(state.isr, state.partition_epoch)
            self._give_time(before, now)
        self._recount(now)

    def _recount(self, now: float) -> None:
        state, node_id = self.partition.state, self.dependencies.node_id
        before = self.followers
        self.followers = {}
        for replica in state.replicas:
            if replica != node_id:
                caught_up_at = now if replica in state.isr else NEVER
                self.followers[replica] = before.get(replica) or FollowerProgress(replica, caught_up_at=caught_up_at)

    # The watermarks

    def advance(self) -> None:
        """Let the high watermark go as far as it may: everything below is on every replica that is in sync, or may be, or is
        about to be."""
        partition, isr = self.partition, self.isr
        local_end = partition.local_end
        if partition.high_watermark >= local_end:
            return
        if self.is_under_min_isr:
            return
        maximal = isr.maximal
        reached = local_end
        for replica, follower in self.followers.items():
            end = follower.log_end_offset
            if end < reached and (replica in maximal or self._is_about_to_join(follower, local_end)):
                reached = end
        if reached > partition.high_watermark:
            partition.raise_high_watermark(reached)

    def _is_about_to_join(self, follower: FollowerProgress, local_end: int) -> bool:
        """If the watermark ran on ahead of one that has nearly caught up, it might never catch up with the watermark."""
        if follower.log_end_offset == UNKNOWN or not self.is_eligible(follower):
            return False
        return follower.is_caught_up(local_end, self.dependencies.now(), self.dependencies.lag_time_max_s)

    def is_eligible(self, follower: FollowerProgress) -> bool:
        return self.dependencies.is_eligible(follower.replica_id, follower.broker_epoch)

    @property
    def is_under_min_isr(self) -> bool:
        """So few replicas are in sync that nothing may be written for all of them (rule A3)."""
        return len(self.isr.isr) < self.partition.min_isr

    @property
    def low_watermark(self) -> int:
        """Every live replica has deleted what is below."""
        is_alive = self.dependencies.is_alive
        starts = [follower.log_start_offset for follower in self.followers.values() if is_alive(follower.replica_id)]
        return min([self.partition.log.log_start_offset, *starts])

    # Followers

    def follower_fetched(self, replica_id: int, asked: FetchPartition, broker_epoch: int, now: float) -> bool:
        """Take a follower's position from its fetch: it may be in sync by now, and more may be committed. Only the registered
        incarnation of its broker counts (SEC-T7): an earlier one is refused; a later one is not counted, which is False, until
        the metadata here knows it."""
        partition = self.partition
        fetching = self.dependencies.incarnation(replica_id, broker_epoch)
        if fetching is not Incarnation.CURRENT:
            if fetching is Incarnation.AHEAD:
                return False
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {replica_id} fetches {partition} in epoch {broker_epoch}, which is not the one that it is registered in",
            )
        follower = self.followers[replica_id]
        follower.fetched(asked.fetch_offset, asked.log_start_offset, partition.log.log_end_offset, broker_epoch, now)
        if replica_id not in self.isr.isr:
            isr_changes.expand(self, now, fetching=replica_id)
        self.advance()
        if partition.deleters:
            partition.deleters.reached(self.low_watermark)
        return True

    def follower_was_caught_up(self, replica_id: int, broker_epoch: int, at: float) -> None:
        """Note that a follower fetched at that time and there was nothing new for it."""
        follower = self.followers.get(replica_id)
        if follower is None or follower.broker_epoch != broker_epoch:
            return
        if self.dependencies.incarnation(replica_id, broker_epoch) is Incarnation.CURRENT:
            follower.was_caught_up(at)

    # Joining and leaving

    def expand_isr(self, *, refused: ProposedIsr | None = None) -> None:
        """Propose followers that were caught up already, and could not join, and may be able to now."""
        if len(self.isr.isr) <= len(self.followers):
            isr_changes.expand(self, self.dependencies.now(), refused=refused)

    def shrink_isr(self, now: float) -> None:
        """Propose that those leave the ISR that have been behind for too long (rule B2); to be called now and then."""
        if not isr_changes.shrink(self, now):
            self.expand_isr()
        # One that was about to join, and did not, no longer holds the watermark back.
        self.advance()

    def isr_answered(self, proposal: ProposedIsr, answer: IsrAnswer | ErrorCode) -> None:
        """Take the controller's answer to a proposal."""
        before = self.isr.isr
        is_to_be_sent = self.isr.answered(proposal, answer, self.partition.state.leader_epoch)
        self._give_time(before, self.dependencies.now())
        if is_to_be_sent:
            self.dependencies.propose_isr(self.partition, proposal)
            return
        self.advance()
        # One of them may have restarted, or caught up, while the request was in flight, and need not fetch again soon.
        self.expand_isr(refused=None if isinstance(answer, IsrAnswer) else proposal)

    def _give_time(self, isr_before: tuple[int, ...], now: float) -> None:
        """A follower that is in the ISR now, and was not, has the whole lag time before it must have caught up."""
        for replica in self.isr.isr:
            if replica not in isr_before and replica in self.followers:
                self.followers[replica].joined(now)

    # Reading from followers

    def can_serve(self, replica: int, offset: int) -> bool:
        """Whether a consumer at `offset` may be sent to that follower (rule A16)."""
        follower = self.followers.get(replica)
        return (
            follower is not None
            and replica in self.isr.isr
            and self.dependencies.is_alive(replica)
            and UNKNOWN < follower.log_start_offset <= offset <= follower.log_end_offset
        )

    # Invariants

    def check_invariants(self) -> None:
        partition, node_id = self.partition, self.dependencies.node_id
        state = partition.state
        self.isr.check_invariants()
        assert state.leader == node_id, f"{partition}: node {state.leader} leads, not {node_id}"
        others = {replica for replica in state.replicas if replica != node_id}
        assert self.followers.keys() == others, f"{partition}: followers {list(self.followers)} of {state.replicas}"
        assert self.start_offset <= partition.log.log_end_offset, (
            f"{partition}: its epoch begins at {self.start_offset}"
        )
        assert self.isr.partition_epoch >= state.partition_epoch, (
            f"{partition}: partition epoch {self.isr.partition_epoch}"
        )
        assert node_id in self.isr.isr, f"{partition}: its leader {node_id} is not in the ISR {self.isr.isr}"
