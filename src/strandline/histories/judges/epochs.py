"""A node's epoch never moves back, in memory or on disk, and nobody hears of an epoch that could still be forgotten (D1)."""

from __future__ import annotations

from strandline.histories.sight import Checker, Seen, Sight, Violation
from strandline.histories.wire import BEGIN_QUORUM_EPOCH, END_QUORUM_EPOCH, FETCH, FETCH_SNAPSHOT, VOTE, Sent
from strandline.raft.election_state import ElectionState


class MonotonicEpoch(Checker):
    """Across restarts too: what is in memory is what was on disk, or newer."""

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        if before is not None and after.epoch < before.epoch and before.life == after.life:
            raise Violation(f"the epoch moved back from {before.epoch} to {after.epoch}")
        saved = sight.elections.get(node_id)
        if saved is not None and after.epoch < saved.epoch:
            raise Violation(f"epoch {after.epoch} in memory, {saved.epoch} on disk")
        # A quorum of one elects itself before it saves; nobody has heard of it then.
        if after.leads and len(after.voters) > 1 and (saved is None or saved.epoch < after.epoch):
            raise Violation(f"leads in epoch {after.epoch}, and its disk knows only {saved}")

    def persisted(self, sight: Sight, node_id: int, before: ElectionState | None, after: ElectionState) -> None:
        if before is not None and after.epoch < before.epoch:
            raise Violation(f"the epoch on disk moved back from {before.epoch} to {after.epoch}")


class SaveBeforeSend(Checker):
    """No request speaks of an epoch that is not on the sender's disk; a pre-vote may."""

    REQUESTS = frozenset({FETCH, VOTE, BEGIN_QUORUM_EPOCH, END_QUORUM_EPOCH, FETCH_SNAPSHOT})

    def sent(self, sight: Sight, sent: Sent) -> None:
        if sent.response or sent.pre_vote or sent.api_key not in self.REQUESTS or sent.epoch <= 0:
            return
        saved = sight.elections.get(sent.source)
        if saved is None or saved.epoch < sent.epoch:
            raise Violation(f"sends API {sent.api_key} in epoch {sent.epoch}, and its disk knows only {saved}")
