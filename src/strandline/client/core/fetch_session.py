"""A fetch session with one broker (KIP-227): after one full request, only what changed is sent.

Epoch 0 opens a session, and ends the one it names; the broker answers with the new session's id, or 0 if it keeps none
for us. After that each request has the next epoch, names the partitions that are new or changed, and those to forget.

Always true: `sent` is what the broker believes we want; after anything that could make that untrue, the next request is
full.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from strandline.errors import ErrorCode
from strandline.ids import TopicPartition

Wanted = TypeVar("Wanted")

NO_SESSION = 0
FIRST_EPOCH = 0
EPOCH_MAX = 0x7FFF_FFFF
BROKEN = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)


class SessionRequest(NamedTuple, Generic[Wanted]):
    session_id: int
    epoch: int
    partitions: dict[TopicPartition, Wanted]
    forgotten: list[TopicPartition]


class FetchSessionHandler(Generic[Wanted]):
    __slots__ = ("_epoch", "_id", "sent")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self.sent: dict[TopicPartition, Wanted] = {}

    def request(self, wanted: dict[TopicPartition, Wanted]) -> SessionRequest[Wanted]:
        """What to send so that the broker answers for exactly these."""
        if self._epoch == FIRST_EPOCH:
            self.sent = dict(wanted)
            return SessionRequest(self._id, FIRST_EPOCH, self.sent, [])
        changed = {key: value for key, value in wanted.items() if self.sent.get(key) != value}
        forgotten = [key for key in self.sent if key not in wanted]
        self.sent = dict(wanted)
        return SessionRequest(self._id, self._epoch, changed, forgotten)

    def answered(self, code: ErrorCode, session_id: int) -> None:
        if code is not ErrorCode.NONE:
            keep = code is not ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self._id, self._epoch = (self._id if keep else NO_SESSION), FIRST_EPOCH
        elif session_id == NO_SESSION:
            self._id, self._epoch = NO_SESSION, FIRST_EPOCH
        else:
            self._id = session_id
            self._epoch = self._epoch + 1 if self._epoch < EPOCH_MAX else 1

    def lost(self) -> None:
        """No answer: the broker may have taken the epoch or not, so begin again and end the old one."""
        self._epoch = FIRST_EPOCH
