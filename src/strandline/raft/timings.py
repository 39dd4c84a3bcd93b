"""How long Raft waits, in seconds, and how much it asks for at once.

Always true: these are bounds and grains, never truths: no rule of the protocol rests on a clock, only its liveness does.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Timings(NamedTuple):
    election_timeout_s: float = 1.0
    """A round of an election lasts between this and twice as long (`controller.quorum.election.timeout.ms`)."""
    election_backoff_max_s: float = 1.0
    """So long at most waits a candidate that has lost a round (`controller.quorum.election.backoff.max.ms`)."""
    fetch_timeout_s: float = 2.0
    """Without an answer from the leader for so long, a voter asks for an election (`controller.quorum.fetch.timeout.ms`)."""
    request_timeout_s: float = 2.0
    """So long the node waits for an answer, and a voter change for its commit (`controller.quorum.request.timeout.ms`)."""
    retry_backoff_s: float = 0.02
    """After a failure; it doubles with each in a row, up to ten times as much (`controller.quorum.retry.backoff.ms`)."""
    fetch_wait_s: float = 0.5
    """So long the leader may keep a Fetch that has nothing to bring."""
    disconnect_grace_s: float = 0.1
    """A voter whose connection to the leader closed asks for a pre-vote within this time."""
    fetch_max_bytes: int = 8 * 1024 * 1024
    fetch_snapshot_max_bytes: int = 8 * 1024 * 1024

    @property
    def check_quorum_s(self) -> float:
        """A leader that a majority has not fetched from for so long resigns (D5)."""
        return CHECK_QUORUM_FACTOR * self.fetch_timeout_s


CHECK_QUORUM_FACTOR: Final = 1.5
"""More than the followers' own timeout: they should notice first, and elect another leader."""
