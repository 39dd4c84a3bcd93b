"""What the checkers see of a cluster: each node's Raft, metadata log and image as they last were, and its disk.

Always true: looking changes nothing and draws no chance; a node that is down is seen as it last was; `durable_offset` is what
a node has had on its device at some time and has not cut since, so a power loss takes nothing below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from strandline.histories.transcript import Transcript
from strandline.histories.wire import Sent
from strandline.metadata.image import MetadataImage
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import OffsetAndEpoch
from strandline.raft.voters import VoterSet

LEADER = "leader"


class Violation(AssertionError):
    """What must always hold does not; the history ends here."""


class Seen(NamedTuple):
    """One node at one instant."""

    life: int
    """Rises with each start of its process."""
    role: str
    epoch: int
    leader_id: int
    high_watermark: int | None
    voters: VoterSet
    log_start_offset: int
    log_end_offset: int
    flushed_offset: int
    image: MetadataImage

    @property
    def leads(self) -> bool:
        return self.role == LEADER


class Batch(NamedTuple):
    """A batch of the metadata log; the CRC stands for its content."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: int


class Storage(Protocol):
    """One node's disk, as far as the quorum uses it."""

    def election_state(self) -> ElectionState | None: ...

    def snapshots(self) -> Sequence[OffsetAndEpoch]: ...

    def durable_end(self) -> int:
        """The end of what a power loss would leave of the log, whatever else it takes."""

    def batches(self, offset: int, limit_offset: int) -> Iterator[Batch]:
        """The batches of the log from the one that holds `offset` on, as far as they begin below the limit."""


class Checker:
    """One property. A checker raises Violation; what it does not override it does not care for."""

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        """A node is not as it was. `before` is None the first time, and after it lost its disk."""

    def persisted(self, sight: Sight, node_id: int, before: ElectionState | None, after: ElectionState) -> None:
        """A node put another election state on its disk."""

    def sent(self, sight: Sight, sent: Sent) -> None:
        """A message of the quorum leaves a node."""

    def wiped(self, sight: Sight, node_id: int) -> None:
        """A node lost its disk and will come back as if it were new."""

    def __repr__(self) -> str:
        return type(self).__name__


class Sight:
    def __init__(self, checkers: Sequence[Checker], transcript: Transcript) -> None:
        self.nodes: dict[int, Seen] = {}
        self.elections: dict[int, ElectionState] = {}
        self.storage: dict[int, Storage] = {}
        self.durable_offset: dict[int, int] = {}
        self.transcript = transcript
        self.violations: list[str] = []
        self._checkers = checkers

    # What is reported

    def see(self, node_id: int, after: Seen) -> None:
        before = self.nodes.get(node_id)
        if before == after:
            return
        self.nodes[node_id] = after
        durable = max(self.durable_offset.get(node_id, 0), after.flushed_offset)
        self.durable_offset[node_id] = min(durable, after.log_end_offset)
        self._narrate(node_id, before, after)
        for checker in self._checkers:
            try:
                checker.changed(self, node_id, before, after)
            except Violation as violation:
                self._judge(checker, node_id, violation)

    def see_election_state(self, node_id: int, after: ElectionState) -> None:
        before = self.elections.get(node_id)
        if before == after:
            return
        self.elections[node_id] = after
        for checker in self._checkers:
            try:
                checker.persisted(self, node_id, before, after)
            except Violation as violation:
                self._judge(checker, node_id, violation)

    def see_sent(self, sent: Sent) -> None:
        if sent.is_vote_granted:
            kind = "grants a pre-vote to" if sent.pre_vote else "votes for"
            self.transcript.note(f"n{sent.source}", f"{kind} n{sent.candidate_id}, epoch {sent.epoch}")
        for checker in self._checkers:
            try:
                checker.sent(self, sent)
            except Violation as violation:
                self._judge(checker, sent.source, violation)

    def forget(self, node_id: int) -> None:
        """The node lost its disk."""
        self.nodes.pop(node_id, None)
        self.elections.pop(node_id, None)
        self.durable_offset.pop(node_id, None)
        for checker in self._checkers:
            checker.wiped(self, node_id)

    def _judge(self, checker: Checker, node_id: int, violation: Violation) -> None:
        text = f"{checker!r}: n{node_id}: {violation}"
        self.violations.append(text)
        self.transcript.note(f"n{node_id}", f"VIOLATES {text}")
        raise Violation(text) from violation

    # What is asked

    @property
    def leader(self) -> int | None:
        """Who leads in the newest epoch that any node leads in, up or down."""
        leaders = [(seen.epoch, node_id) for node_id, seen in self.nodes.items() if seen.leads]
        return max(leaders)[1] if leaders else None

    def is_newest_leader(self, node_id: int) -> bool:
        return self.leader == node_id

    @property
    def high_watermark(self) -> int:
        """The greatest that any node knows of."""
        return max((seen.high_watermark or 0 for seen in self.nodes.values()), default=0)

    # What a reader would like to know

    def _narrate(self, node_id: int, before: Seen | None, after: Seen) -> None:
        note = self.transcript.note
        who = f"n{node_id}"
        if before is None or before.life != after.life:
            note(who, f"loads its log {after.log_start_offset}-{after.log_end_offset}, epoch {after.epoch}")
            before = after._replace(role="", high_watermark=after.high_watermark, leader_id=-2)
        if (before.role, before.epoch) != (after.role, after.epoch):
            note(who, f"{after.role}, epoch {after.epoch}, log end {after.log_end_offset}")
        elif before.leader_id != after.leader_id:
            note(who, f"{after.role}, epoch {after.epoch}, leader {after.leader_id}")
        if after.leads and before.high_watermark != after.high_watermark and after.high_watermark is not None:
            note(who, f"commits to {after.high_watermark}")
        if after.log_end_offset < before.log_end_offset:
            note(who, f"truncates {before.log_end_offset} to {after.log_end_offset}")
        if after.log_start_offset != before.log_start_offset:
            note(who, f"log start {before.log_start_offset} to {after.log_start_offset}")
        if before.voters is not after.voters and before.voters != after.voters:
            note(who, f"voters {sorted(before.voters.ids)} to {sorted(after.voters.ids)}")
