"""KRaft: votes only if prospective or candidate: only a candidate that asked gets votes, and a leader has a majority
of them."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation
from strandline.histories.wire import VOTE, QuorumMessage


class ElectedByMajority(QuorumJudge):
    def __init__(self) -> None:
        self._granted: dict[tuple[int, int], set[int]] = {}
        """By epoch and candidate, who voted for it, itself included."""
        self._asked: set[tuple[int, int]] = set()

    def sent(self, observed: QuorumObservation, sent: QuorumMessage) -> None:
        if sent.api_key != VOTE or sent.pre_vote:
            return
        asked = (sent.epoch, sent.candidate_id)
        if not sent.response:
            self._asked.add(asked)
            self._granted.setdefault(asked, set()).add(sent.source)
        elif sent.granted:
            if asked not in self._asked:
                raise Violation(f"votes for {sent.candidate_id} in epoch {sent.epoch}, which never asked")
            self._granted[asked].add(sent.source)

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        if not after.leads or (
            before is not None and before.leads and (before.epoch, before.life) == (after.epoch, after.life)
        ):
            return
        granted = self._granted.get((after.epoch, node_id), set()) | {node_id}
        if sum(voter_id in granted for voter_id in after.voters.ids) < after.voters.majority:
            raise Violation(f"leads in epoch {after.epoch} with the votes of {sorted(granted)} of {after.voters.ids}")
