"""The epochs of fetch sessions, of consumers and of followers alike (KIP-227).

Always true: an epoch rises by one with each request and wraps from 2^31-1 to 1, so a request or a reply that was lost is noticed.
"""

from __future__ import annotations

from typing import Protocol

from strandline.errors import ErrorCode, KafkaError

EPOCH_MAX = 2**31 - 1


class SessionWithEpoch(Protocol):
    epoch: int

    @property
    def by_id(self) -> bool:
        """It names topics by their ids."""
        ...


def advance(session: SessionWithEpoch, session_id: int, epoch: int, *, by_id: bool) -> None:
    """The next request of a session: it has the epoch that is expected, and names topics as the first one did."""
    if session.by_id != by_id:
        raise KafkaError(
            ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, f"fetch session {session_id} names topics the other way"
        )
    if epoch != session.epoch:
        raise KafkaError(
            ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            f"fetch session {session_id} is at epoch {session.epoch}, not {epoch}",
        )
    session.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
