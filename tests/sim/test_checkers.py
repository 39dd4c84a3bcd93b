"""Each checker lets a sound story pass and stops a broken one. The stories are told by hand, without a node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strandline.histories.sight import Batch, Checker, Seen, Sight, Violation
from strandline.histories.transcript import Transcript
from strandline.histories.wire import FETCH, FETCH_SNAPSHOT, VOTE, Sent
from strandline.ids import ZERO_UUID
from strandline.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import Address, OffsetAndEpoch, ReplicaKey
from strandline.raft.voters import VoterNode, VoterSet
from strandline.histories import judges as checkers

VOTERS = VoterSet(VoterNode(ReplicaKey(i), {"CONTROLLER": Address(f"n{i}", 9093)}) for i in (1, 2, 3))


class Shelf:
    """A disk that says what it is told to."""

    def __init__(self) -> None:
        self.log: list[Batch] = []
        self.checkpoints: list[OffsetAndEpoch] = []
        self.durable = 0

    def election_state(self) -> ElectionState | None:
        return None

    def snapshots(self) -> list[OffsetAndEpoch]:
        return self.checkpoints

    def durable_end(self) -> int:
        return self.durable

    def batches(self, offset: int, limit_offset: int) -> Iterator[Batch]:
        return (b for b in self.log if b.last_offset >= offset and b.base_offset < limit_offset)


class Stage:
    def __init__(self, checker: Checker) -> None:
        self.sight = Sight([checker], Transcript(lambda: 0.0))
        self.shelves = {node_id: Shelf() for node_id in VOTERS.ids}
        self.sight.storage = dict(self.shelves)

    def see(self, node_id: int, role: str = "follower", **changes: object) -> None:
        before = self.sight.nodes.get(node_id) or Seen(1, role, 1, -1, None, VOTERS, 0, 0, 0, MetadataImage())
        self.sight.see(node_id, before._replace(role=role, **changes))

    def lead(self, node_id: int, **changes: object) -> None:
        self.see(node_id, "leader", leader_id=node_id, **changes)

    def save(self, node_id: int, epoch: int, leader_id: int = -1, voted_id: int | None = None) -> None:
        voted = None if voted_id is None else ReplicaKey(voted_id)
        self.sight.see_election_state(node_id, ElectionState(epoch, leader_id, voted))

    def vote(self, voter: int, candidate: int, epoch: int, *, pre_vote: bool = False) -> None:
        sent = Sent(voter, VOTE, epoch, response=True, candidate_id=candidate, pre_vote=pre_vote, granted=True)
        self.sight.see_sent(sent)


def stage(checker: type[Checker]) -> Stage:
    return Stage(checker())


def broken(checker: type[Checker]) -> pytest.RaisesExc[Violation]:
    return pytest.raises(Violation, match=checker.__name__)


def test_the_high_watermark_of_a_process_never_moves_back() -> None:
    story = stage(checkers.MonotonicHighWatermark)
    story.see(2, high_watermark=5)
    story.see(2, high_watermark=None)
    story.see(2, high_watermark=5)
    story.see(2, life=2, high_watermark=0)
    story.see(2, high_watermark=4)
    with broken(checkers.MonotonicHighWatermark):
        story.see(2, high_watermark=3)


def test_the_next_leader_commits_at_least_as_much_but_a_deposed_one_may_lag() -> None:
    story = stage(checkers.MonotonicHighWatermark)
    story.lead(1, epoch=1, high_watermark=5)
    story.lead(2, epoch=2, high_watermark=9)
    story.lead(1, high_watermark=7)
    with broken(checkers.MonotonicHighWatermark):
        story.lead(3, epoch=3, high_watermark=8)


def test_a_leader_commits_with_a_record_of_its_own_epoch() -> None:
    story = stage(checkers.CommittedInOwnEpoch)
    story.shelves[1].log = [Batch(0, 2, 1, 11), Batch(3, 3, 2, 12)]
    story.lead(1, epoch=2, log_end_offset=4, high_watermark=4)
    with broken(checkers.CommittedInOwnEpoch):
        story.lead(1, epoch=2, high_watermark=3)


def test_epochs_do_not_move_back_across_a_restart() -> None:
    story = stage(checkers.MonotonicEpoch)
    story.save(1, 4)
    story.see(1, epoch=4)
    with broken(checkers.MonotonicEpoch):
        story.see(1, life=2, epoch=3)
    with broken(checkers.MonotonicEpoch):
        story.save(1, 3)


def test_nobody_leads_in_an_epoch_that_is_not_on_its_disk() -> None:
    story = stage(checkers.MonotonicEpoch)
    story.save(1, 4)
    with broken(checkers.MonotonicEpoch):
        story.lead(1, epoch=5)


def test_no_request_speaks_of_an_epoch_that_is_not_on_disk() -> None:
    story = stage(checkers.SaveBeforeSend)
    story.save(1, 4)
    story.sight.see_sent(Sent(1, FETCH, 4))
    story.sight.see_sent(Sent(1, VOTE, 5, pre_vote=True))
    with broken(checkers.SaveBeforeSend):
        story.sight.see_sent(Sent(1, VOTE, 5))


def test_a_majority_has_on_its_devices_what_is_committed() -> None:
    story = stage(checkers.MajorityReachedHighWatermark)
    story.see(2, log_end_offset=10, flushed_offset=7)
    story.lead(1, log_end_offset=10, flushed_offset=9, high_watermark=7)
    with broken(checkers.MajorityReachedHighWatermark):
        story.lead(1, high_watermark=8)


def test_what_was_cut_is_not_on_a_device_any_more() -> None:
    story = stage(checkers.MajorityReachedHighWatermark)
    story.see(2, log_end_offset=10, flushed_offset=10)
    story.see(2, log_end_offset=6, flushed_offset=6)
    with broken(checkers.MajorityReachedHighWatermark):
        story.lead(1, log_end_offset=10, flushed_offset=10, high_watermark=7)


def test_a_voter_fetches_from_where_it_has_flushed() -> None:
    story = stage(checkers.FetchAfterFlush)
    story.see(2, log_end_offset=10, flushed_offset=7)
    story.sight.see_sent(Sent(2, FETCH, 1, offset=7))
    with broken(checkers.FetchAfterFlush):
        story.sight.see_sent(Sent(2, FETCH, 1, offset=10))


def test_what_is_said_to_be_flushed_is_on_the_device() -> None:
    story = stage(checkers.FlushedIsOnDevice)
    story.shelves[2].durable = 7
    story.see(2, log_end_offset=10, flushed_offset=7)
    with broken(checkers.FlushedIsOnDevice):
        story.see(2, flushed_offset=8)


def test_an_epoch_has_one_leader_in_memory_and_on_disk() -> None:
    story = stage(checkers.SingleLeader)
    story.lead(1, epoch=3)
    story.see(2, epoch=3, leader_id=1)
    story.lead(2, epoch=4)
    with broken(checkers.SingleLeader):
        story.save(3, 4, leader_id=3)


def test_a_new_leader_has_all_that_was_committed() -> None:
    story = stage(checkers.LeaderCompleteness)
    story.lead(1, epoch=1, log_end_offset=9, high_watermark=8)
    story.lead(2, epoch=2, log_end_offset=8)
    with broken(checkers.LeaderCompleteness):
        story.lead(3, epoch=3, log_end_offset=7)


def test_where_the_leader_keeps_its_majority_nobody_else_leads() -> None:
    story = stage(checkers.StableLeadership)
    story.lead(1, epoch=1)
    story.see(1, "leader", high_watermark=3)
    with broken(checkers.StableLeadership):
        story.lead(2, epoch=2)


def test_a_voter_votes_once_in_an_epoch() -> None:
    story = stage(checkers.OneVote)
    story.vote(3, 1, 5)
    story.vote(3, 1, 5)
    story.vote(3, 2, 5, pre_vote=True)
    story.vote(3, 2, 6)
    with broken(checkers.OneVote):
        story.vote(3, 2, 5)


def test_a_candidate_has_voted_for_itself() -> None:
    story = stage(checkers.OneVote)
    story.sight.see_sent(Sent(1, VOTE, 5, candidate_id=1))
    with broken(checkers.OneVote):
        story.vote(1, 2, 5)


def test_a_vote_is_on_disk_when_its_reply_leaves() -> None:
    story = stage(checkers.VoteBeforeReply)
    story.save(3, 5, voted_id=1)
    story.vote(3, 1, 5)
    story.vote(3, 2, 6, pre_vote=True)
    with broken(checkers.VoteBeforeReply):
        story.vote(3, 2, 6)
    with broken(checkers.VoteBeforeReply):
        story.vote(3, 2, 5)


def test_a_log_begins_at_0_or_at_the_end_of_a_snapshot() -> None:
    story = stage(checkers.SnapshotAtLogStart)
    story.shelves[1].checkpoints.append(OffsetAndEpoch(20, 1))
    story.see(1, log_start_offset=20, log_end_offset=30)
    with broken(checkers.SnapshotAtLogStart):
        story.see(1, log_start_offset=25)


def test_a_leader_does_not_load_a_snapshot() -> None:
    story = stage(checkers.LeaderNeverLoadsSnapshot)
    story.lead(1, log_end_offset=10)
    with broken(checkers.LeaderNeverLoadsSnapshot):
        story.sight.see_sent(Sent(1, FETCH_SNAPSHOT, 1))
    with broken(checkers.LeaderNeverLoadsSnapshot):
        story.lead(1, log_end_offset=8)


def test_nobody_cuts_what_it_knows_to_be_committed() -> None:
    story = stage(checkers.CommittedIsKept)
    story.see(1, log_end_offset=10, high_watermark=8)
    story.see(1, log_end_offset=8)
    with broken(checkers.CommittedIsKept):
        story.see(1, log_end_offset=7)


def test_an_offset_has_one_batch_on_all_nodes_once_it_is_committed() -> None:
    story = stage(checkers.ConsistentCommittedData)
    story.shelves[1].log = [Batch(0, 2, 1, 11), Batch(3, 3, 1, 12)]
    story.shelves[2].log = [Batch(0, 2, 1, 11), Batch(3, 3, 2, 99)]
    story.see(1, log_end_offset=4, high_watermark=4)
    story.see(2, log_end_offset=4, high_watermark=3)
    with broken(checkers.ConsistentCommittedData):
        story.see(2, high_watermark=4)


def image(end_offset: int, *, fenced: bool = False, **partition: object) -> MetadataImage:
    known: dict[str, object] = {"replicas": (1, 2), "isr": (1, 2), "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    topic = TopicImage("t", ZERO_UUID, (PartitionImage(**(known | partition)),))  # type: ignore[arg-type]
    brokers = {i: BrokerImage(i, 0, ZERO_UUID, (), fenced=fenced and i == 2) for i in (1, 2)}
    return MetadataImage(end_offset, topics={"t": topic}, brokers=brokers)


def test_two_nodes_that_applied_the_same_have_the_same_image() -> None:
    story = stage(checkers.EqualImages)
    story.see(1, high_watermark=5, image=image(5))
    story.see(2, high_watermark=5, image=image(5))
    with broken(checkers.EqualImages):
        story.see(3, high_watermark=5, image=image(5, isr=(1,)))


def test_nobody_applies_what_is_not_committed() -> None:
    story = stage(checkers.EqualImages)
    story.see(1, high_watermark=5)
    with broken(checkers.EqualImages):
        story.see(2, high_watermark=4, image=image(6))


def test_a_fenced_broker_is_in_no_isr_but_alone_and_without_a_leader() -> None:
    story = stage(checkers.FencedIsNotInSync)
    story.see(1, image=image(5, fenced=True, isr=(1,)))
    story.see(1, image=image(6, fenced=True, isr=(2,), leader=-1))
    with broken(checkers.FencedIsNotInSync):
        story.see(1, image=image(7, fenced=True))


@pytest.mark.parametrize("wrong", [{"isr": (1, 3)}, {"elr": (2,)}, {"isr": (2,)}, {"isr": (1,), "elr": (2,)}])
def test_in_sync_replicas_are_replicas_and_apart_from_eligible_ones(wrong: dict[str, object]) -> None:
    story = stage(checkers.InSyncReplicas)
    story.see(1, image=image(5))
    story.see(1, image=image(6, isr=(), elr=(1, 2), leader=-1))
    with broken(checkers.InSyncReplicas):
        story.see(1, image=image(7, **wrong))
