"""D4: a new epoch is begun by a candidate, which votes for itself; a pre-vote leaves the epoch as it is.

One that has led an epoch and resigned may go on to the next one without a vote.
"""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumObservation, Violation
from strandline.histories.wire import VOTE, QuorumMessage
from strandline.raft.election_state import ElectionState

NOBODY = -1


class EpochBegunByCandidate(QuorumJudge):
    def __init__(self) -> None:
        self._begun: set[int] = set()

    def sent(self, observed: QuorumObservation, sent: QuorumMessage) -> None:
        if sent.api_key == VOTE and not sent.pre_vote:
            self._begun.add(sent.epoch)

    def persisted(
        self, observed: QuorumObservation, node_id: int, before: ElectionState | None, after: ElectionState
    ) -> None:
        is_news = before is not None and after.epoch > before.epoch and after.epoch not in self._begun
        self._begun.add(after.epoch)
        if (
            is_news
            and before is not None
            and after.voted is None
            and after.leader_id == NOBODY
            and before.leader_id != node_id
        ):
            raise Violation(f"begins epoch {after.epoch} without a vote: {before}, {after}")
