"""What must hold after every event (docs/protocol.md, "Invariants": those of Kafka's own Raft simulation, and a few more).

Always true: the checker sees disks and memories of all nodes at once, which no node does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.errors import ErrorCode
from strandline.raft.messages import (
    NO_NODE,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)

if TYPE_CHECKING:
    from tests.unit.raft.cluster import Cluster, Node


class Invariants:
    def __init__(self) -> None:
        self.committed_batches: dict[int, tuple[int, bytes]] = {}
        """Each committed batch by its first offset: where it ends, and its bytes."""
        self.committed_end = 0
        self.leaders: dict[int, int] = {}
        """Of each epoch, as saved."""
        self.votes: dict[tuple[int, int], object] = {}
        """Of each (epoch, node)."""
        self._epochs: dict[int, int] = {}
        self._committed_of: dict[tuple[int, int], int] = {}

    def check(self, cluster: Cluster, node: Node, *, became_leader: bool) -> None:
        raft = node.raft
        assert raft is not None
        # MonotonicEpoch: never falls, and memory says what the disk says.
        assert node.saved.epoch >= self._epochs.get(node.id, 0), "the epoch fell"
        assert raft.epoch == node.saved.epoch, "the epoch is not saved"
        self._epochs[node.id] = node.saved.epoch
        # SingleLeader: all that is saved names one leader for an epoch.
        if node.saved.leader_id != NO_NODE:
            known = self.leaders.setdefault(node.saved.epoch, node.saved.leader_id)
            assert known == node.saved.leader_id, f"two leaders of epoch {node.saved.epoch}"
        # One vote in an epoch.
        if node.saved.voted is not None:
            vote = self.votes.setdefault((node.saved.epoch, node.id), node.saved.voted)
            assert vote == node.saved.voted, f"node {node.id} voted twice in epoch {node.saved.epoch}"
        # Who stood still may find the votes of an epoch that others have left behind: it leads, but nobody follows.
        if became_leader and raft.epoch == max(self.leaders):
            self._leader_is_complete(node)
        # SnapshotAtLogStart
        if node.log.start_offset > 0:
            assert node.log.start in node.log.snapshots

    def _leader_is_complete(self, node: Node) -> None:
        assert node.log.end_offset >= self.committed_end, f"node {node.id} leads without what is committed"
        self._agrees(node, self.committed_end)

    def committed(self, cluster: Cluster, node: Node, high_watermark: int, *, by_leader: bool) -> None:
        raft = node.raft
        assert raft is not None
        # MonotonicHighWatermark, on each node and for all.
        life = (node.id, node.life)
        assert high_watermark > self._committed_of.get(life, -1), "the high watermark fell"
        self._committed_of[life] = high_watermark
        assert high_watermark <= node.log.end_offset
        if by_leader and high_watermark > self.committed_end:
            # MajorityReachedHighWatermark: on the devices of a majority of the leader's voters.
            ends = [cluster.nodes[voter_id].log.durable_end() for voter_id in raft.voters.ids]
            reached = sum(end >= high_watermark for end in ends)
            assert reached >= raft.voters.majority, f"{high_watermark} is committed, but the disks end at {ends}"
        if raft.is_leader:
            # A leader commits by a record of its own epoch; what is older goes along with it (D7).
            last = next(b for b in node.log.batches if b.base_offset < high_watermark <= b.next_offset)
            assert last.epoch == raft.epoch, "a record of an older epoch is committed by itself"
        assert by_leader or high_watermark <= self.committed_end, "a follower is ahead of every leader"
        self._agrees(node, high_watermark)
        for batch in node.log.batches:
            if batch.next_offset <= high_watermark:
                self.committed_batches[batch.base_offset] = (batch.next_offset, batch.data)
        self.committed_end = max(self.committed_end, high_watermark)

    def _agrees(self, node: Node, end_offset: int) -> None:
        """ConsistentCommittedData: what is committed is the same everywhere."""
        for batch in node.log.batches:
            if batch.next_offset <= end_offset and batch.base_offset in self.committed_batches:
                known = self.committed_batches[batch.base_offset]
                assert known == (batch.next_offset, batch.data), f"node {node.id} differs at {batch.base_offset}"

    def said(self, node: Node, message: object, asked: object = None) -> None:
        """D1: what leaves a node rests on what its disk says, whatever happens next."""
        saved = node.saved
        is_said = getattr(message, "epoch", saved.epoch) == saved.epoch or _claims_nothing(message, asked, saved.epoch)
        assert is_said, f"node {node.id} says what is not saved"
        if isinstance(message, VoteResponse) and message.granted:
            assert isinstance(asked, VoteRequest)
            is_saved = saved.voted is not None and saved.voted.id == asked.candidate.id
            assert asked.pre_vote or is_saved, f"the vote of node {node.id} is not saved"

    def truncated(self, node: Node, end_offset: int) -> None:
        known = self._committed_of.get((node.id, node.life), 0)
        assert end_offset >= known, f"node {node.id} cuts what it knew to be committed"


def _claims_nothing(message: object, asked: object, saved_epoch: int) -> bool:
    """In the newer epoch of whoever asks: no vote and no leader (SEC-Z16)."""
    if isinstance(asked, VoteRequest) and isinstance(message, VoteResponse):
        return message == VoteResponse(message.error, asked.epoch, NO_NODE) and asked.epoch > saved_epoch
    if isinstance(asked, BeginQuorumEpochRequest | EndQuorumEpochRequest):
        error = ErrorCode.BROKER_NOT_AVAILABLE if isinstance(asked, BeginQuorumEpochRequest) else ErrorCode.NONE
        return message == QuorumEpochResponse(error, asked.epoch, NO_NODE) and asked.epoch > saved_epoch
    return False
