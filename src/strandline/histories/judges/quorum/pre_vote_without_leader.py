"""D4: a follower that hears its leader grants nobody a pre-vote: one bad link costs no election.

That it hears it is known from its Fetches: it asks again when it was answered, and nothing was harmed for a while.
"""

from __future__ import annotations

from strandline.histories.sight import Judge, Seen, Sight, Violation
from strandline.histories.wire import FETCH, Sent

MOMENT = 0.5
"""Of the fetch timeout."""
FETCHES = 3


class PreVoteWithoutLeader(Judge):
    def __init__(self) -> None:
        self._fetched: dict[tuple[int, int], list[float]] = {}
        """By node and epoch: when it fetched lately."""

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        if before is None or (before.life, before.epoch, before.leader_id) != (
            after.life,
            after.epoch,
            after.leader_id,
        ):
            self._fetched.pop((node_id, after.epoch), None)

    def sent(self, sight: Sight, sent: Sent) -> None:
        if sent.api_key == FETCH and sent.exchange is None:
            times = self._fetched.setdefault((sent.source, sent.epoch), [])
            times.append(sight.now())
            del times[:-FETCHES]
        if not sent.is_vote_granted or not sent.pre_vote:
            return
        seen = sight.nodes.get(sent.source)
        if seen is None or seen.role != "follower" or seen.leader_id == sent.candidate_id:
            return
        leader = sight.nodes.get(seen.leader_id)
        if leader is None or not leader.leads or leader.epoch != seen.epoch or not sight.is_running(seen.leader_id):
            return  # it asked again because it was not answered
        if sight.is_cut(sent.source, seen.leader_id):
            return
        times = self._fetched.get((sent.source, seen.epoch), [])
        ago_s = sight.now() - times[0] if len(times) == FETCHES else float("inf")
        if ago_s < MOMENT * sight.fetch_timeout_s(sent.source) and sight.is_quiet:
            raise Violation(
                f"grants {sent.candidate_id} a pre-vote, and has fetched from {seen.leader_id} for {ago_s:.2f} s"
            )
