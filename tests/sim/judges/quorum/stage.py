"""A stage for judges of the quorum: nodes with given states, and disks with given contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from strandline.config.node import NodeConfig
from strandline.histories.batches import LoggedBatch
from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation
from strandline.histories.transcript import Transcript
from strandline.histories.wire import FETCH, VOTE, QuorumMessage
from strandline.ids import ZERO_UUID
from strandline.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import Address, OffsetAndEpoch, ReplicaKey
from strandline.raft.voters import VoterNode, VoterSet


def voters(*ids: int) -> VoterSet:
    return VoterSet(VoterNode(ReplicaKey(i), {"CONTROLLER": Address(f"n{i}", 9093)}) for i in ids)


VOTERS = voters(1, 2, 3)


class Shelf:
    """A disk."""

    def __init__(self) -> None:
        self.log: list[LoggedBatch] = []
        self.checkpoints: list[OffsetAndEpoch] = []
        self.durable = 0
        self.errors: dict[int, int] = {}
        self.is_running = True
        self.config = cast(NodeConfig, SimpleNamespace(controller_quorum_fetch_timeout_ms=1_000))

    def check_invariants(self) -> None:
        pass

    def snapshots(self) -> list[OffsetAndEpoch]:
        return self.checkpoints

    def durable_end(self) -> int:
        return self.durable

    def batches(self, offset: int, limit_offset: int) -> Iterator[LoggedBatch]:
        return (b for b in self.log if b.last_offset >= offset and b.base_offset < limit_offset)

    def error_counts(self) -> Mapping[int, int]:
        return self.errors


class Stage:
    def __init__(self, judge: QuorumJudge) -> None:
        self.judge = judge
        self.now = 0.0
        self.observed = QuorumObservation([judge], Transcript(lambda: self.now), now=lambda: self.now)
        self.shelves = {node_id: Shelf() for node_id in VOTERS.ids}
        self.observed.members = dict(self.shelves)

    def see(self, node_id: int, role: str = "follower", **changes: Any) -> None:
        before = self.observed.nodes.get(node_id) or QuorumNodeState(
            1, role, 1, -1, None, VOTERS, 0, 0, 0, MetadataImage()
        )
        self.observed.see(node_id, before._replace(role=role, **changes))

    def lead(self, node_id: int, **changes: Any) -> None:
        self.see(node_id, "leader", leader_id=node_id, **changes)

    def save(self, node_id: int, epoch: int, leader_id: int = -1, voted_id: int | None = None) -> None:
        voted = None if voted_id is None else ReplicaKey(voted_id)
        self.observed.see_election_state(node_id, ElectionState(epoch, leader_id, voted))

    def ask(self, candidate: int, epoch: int, *, pre_vote: bool = False) -> None:
        self.observed.see_sent(QuorumMessage(candidate, VOTE, epoch, candidate_id=candidate, pre_vote=pre_vote))

    def fetch(self, voter: int, epoch: int) -> None:
        self.observed.see_sent(QuorumMessage(voter, FETCH, epoch))

    def vote(self, voter: int, candidate: int, epoch: int, *, pre_vote: bool = False) -> None:
        sent = QuorumMessage(voter, VOTE, epoch, response=True, candidate_id=candidate, pre_vote=pre_vote, granted=True)
        self.observed.see_sent(sent)


def stage(judge: type[QuorumJudge]) -> Stage:
    return Stage(judge())


def broken(judge: type[object]) -> pytest.RaisesExc[Violation]:
    return pytest.raises(Violation, match=judge.__name__)


def image(end_offset: int, *, fenced: bool = False, **partition: Any) -> MetadataImage:
    """Of two brokers and a topic of one partition, which is as it should be but for what is said."""
    known: dict[str, Any] = {
        "replicas": (1, 2),
        "isr": (1, 2),
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": end_offset,
    }
    topic = TopicImage("t", ZERO_UUID, (PartitionImage(**(known | partition)),))
    brokers = {i: BrokerImage(i, 0, ZERO_UUID, (), fenced=fenced and i == 2) for i in (1, 2)}
    return MetadataImage(end_offset, topics={"t": topic}, topics_by_id={ZERO_UUID: topic}, brokers=brokers)
