"""Events: what happens to Raft.

Always true: events come one at a time, and the effects of one are carried out, in their order, before the next one comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from strandline.raft.messages import Address, OffsetAndEpoch, Request, Response
from strandline.raft.voters import VoterSet


class Started(NamedTuple):
    """The first event: the log and the election state are loaded."""


class Tick(NamedTuple):
    """Time passed: `Raft.deadline` is reached."""


class Received(NamedTuple):
    """A request from a peer, a broker or a person."""

    request: Request
    answer: Callable[[Response], None]
    """Only handed back, in the effect `Answer`; Raft never calls it."""


class Cancelled(NamedTuple):
    """The sender of this request is gone: no answer is needed any more."""

    answer: Callable[[Response], None]


class Replied(NamedTuple):
    """The response to a request that Raft sent."""

    to: Destination
    request: Request
    response: Response


class RequestUnanswered(NamedTuple):
    """A request that Raft sent got no response: the connection failed or closed, or the time was over."""

    to: Destination
    request: Request


class Disconnected(NamedTuple):
    """A connection with this node closed, which is no more than a hint: what was asked through it is `RequestUnanswered` too."""

    node_id: int


class LeaderAppended(NamedTuple):
    """The leader wrote records of its own, or control records that Raft asked for; they are not on the device yet."""

    end_offset: int


class Flushed(NamedTuple):
    """Everything in the log below this offset is on the device."""

    end_offset: int


class SnapshotLoaded(NamedTuple):
    """A snapshot that was fetched is in its place, on the device, and the log begins and ends at its end."""

    snapshot_id: OffsetAndEpoch
    voters: VoterSet | None
    """The voters in it, if it names any."""
    kraft_version: int


class SnapshotRefused(NamedTuple):
    """A snapshot that was fetched is not whole: nothing has changed on the disk."""

    snapshot_id: OffsetAndEpoch


class Resign(NamedTuple):
    """The node is about to stop: a leader hands over (D15)."""


class Destination(NamedTuple):
    """A node to send to; the id is -1 for a bootstrap server, of which only the address is known."""

    id: int
    address: Address


Event = (
    Started
    | Tick
    | Received
    | Cancelled
    | Replied
    | RequestUnanswered
    | Disconnected
    | LeaderAppended
    | Flushed
    | SnapshotLoaded
    | SnapshotRefused
    | Resign
)
