"""Effects: what Raft wants done.

Always true: effects are carried out in their order; what is to be saved is on the device before anything that comes after it
leaves the node (D1). Effects that take long report their end with an event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from strandline.raft.election_state import ElectionState
from strandline.raft.events import Destination
from strandline.raft.messages import OffsetAndEpoch, Request, Response


class Save(NamedTuple):
    """Put the election state on the device (`quorum-state`)."""

    state: ElectionState


class SendRequest(NamedTuple):
    """Send a request; `Replied` or `RequestUnanswered` follows, exactly one of them, with this very request."""

    to: Destination
    request: Request


class SendResponse(NamedTuple):
    """Answer a request. Records or a chunk that go along are read now."""

    answer: Callable[[Response], None]
    response: Response


class AppendControl(NamedTuple):
    """Append one batch of control records (key, value) in the leader's epoch; `Appended` follows."""

    epoch: int
    records: tuple[tuple[bytes, bytes], ...]


class AppendFetched(NamedTuple):
    """Append batches that the leader sent; their CRC was checked. `Flushed` follows once they are on the device."""

    records: bytes


class Truncate(NamedTuple):
    """Cut the log to this end: what is behind it was never committed."""

    end_offset: int


class Flush(NamedTuple):
    """Bring the log to the device; `Flushed` follows. Asking again before that is no error."""


class HighWatermarkChanged(NamedTuple):
    """The high watermark is here now: everything below may be applied. Within one process it never moves back."""

    high_watermark: int


class LeaderChanged(NamedTuple):
    """This node knows of another epoch or leader than before; -1 for an epoch without a known leader."""

    epoch: int
    leader_id: int


class StoreChunk(NamedTuple):
    """A part of a snapshot that is being fetched; position 0 begins it anew."""

    snapshot_id: OffsetAndEpoch
    position: int
    chunk: bytes


class FinishSnapshot(NamedTuple):
    """All chunks are there: check it, put it in its place, and let the log begin at its end; `SnapshotLoaded` follows, or
    `SnapshotRefused`."""

    snapshot_id: OffsetAndEpoch


class FailQuorum(NamedTuple):
    """An invariant of the protocol is broken; the node has to stop."""

    reason: str


Effect = (
    Save
    | SendRequest
    | SendResponse
    | AppendControl
    | AppendFetched
    | Truncate
    | Flush
    | HighWatermarkChanged
    | LeaderChanged
    | StoreChunk
    | FinishSnapshot
    | FailQuorum
)
