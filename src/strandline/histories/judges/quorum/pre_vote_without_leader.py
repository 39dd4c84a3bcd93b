"""D4: a follower that hears its leader grants no pre-vote: one bad link costs no election.

That it hears it is known from its Fetches: it asks again when it was answered, and no fault was injected for a while.
"""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation
from strandline.histories.wire import FETCH, QuorumMessage

MOMENT = 0.5
"""Of the fetch timeout."""
FETCHES = 3


class PreVoteWithoutLeader(QuorumJudge):
    def __init__(self) -> None:
        self._fetched: dict[tuple[int, int], list[float]] = {}
        """By node and epoch: when it fetched lately."""

    def changed(
        self, observed: QuorumObservation, node_id: int, before: QuorumNodeState | None, after: QuorumNodeState
    ) -> None:
        if before is None or (before.life, before.epoch, before.leader_id) != (
            after.life,
            after.epoch,
            after.leader_id,
        ):
            self._fetched.pop((node_id, after.epoch), None)

    def sent(self, observed: QuorumObservation, sent: QuorumMessage) -> None:
        if sent.api_key == FETCH and sent.exchange is None:
            times = self._fetched.setdefault((sent.source, sent.epoch), [])
            times.append(observed.now())
            del times[:-FETCHES]
        if not sent.is_vote_granted or not sent.pre_vote:
            return
        seen = observed.nodes.get(sent.source)
        if seen is None or seen.role != "follower" or seen.leader_id == sent.candidate_id:
            return
        leader = observed.nodes.get(seen.leader_id)
        if leader is None or not leader.leads or leader.epoch != seen.epoch or not observed.is_running(seen.leader_id):
            return  # it asked again because it was not answered
        if observed.is_cut(sent.source, seen.leader_id):
            return
        times = self._fetched.get((sent.source, seen.epoch), [])
        ago_s = observed.now() - times[0] if len(times) == FETCHES else float("inf")
        if ago_s < MOMENT * observed.fetch_timeout_s(sent.source) and observed.is_quiet:
            raise Violation(
                f"grants {sent.candidate_id} a pre-vote, and has fetched from {seen.leader_id} for {ago_s:.2f} s"
            )
