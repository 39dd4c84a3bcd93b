"""One follower's fetch session with one leader (KIP-227), without I/O: whom to name next, whom to forget, who rests.

Epoch 0 opens a session; each request after it has the next epoch and names only what changed. One request names
NAMED_MAX partitions at most: where more are due, the next one goes on. A request may leave while the one before is
still unanswered, so that a partition that comes back need not wait for the end of another partition's long poll: an
answer counts only if its partition was not named again in a later request.

Always true: a partition is due (to be named), in the session (the leader knows where it is), or resting (not in the
session, and the leader is asked to forget it); a round costs what changed, however many partitions are followed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from strandline.replica.partition import Partition
from strandline.wire.fetch import TOPIC_ID_SINCE, FetchPartition

NO_SESSION = 0
FIRST_EPOCH = 0
EPOCH_MAX = 0x7FFF_FFFF
NAMED_MAX = 10_000
"""In one request, and as many are forgotten: with a topic for each, less than a leader decodes
(`wire.fetch.ENTRIES_MAX`)."""

Place = tuple[str | bytes, int]
"""A partition as this connection's version names it."""


class Followed:
    """One partition of the session."""

    __slots__ = ("asked", "asked_in", "in_session", "lag", "partition", "place", "rests", "turn")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.place: Place = ("", -1)
        self.asked: FetchPartition | None = None
        """What the leader was last asked for; meaningful while `in_session`."""
        self.asked_in = 0
        """The number of the request that named it so."""
        self.in_session = False
        self.rests = False
        self.turn = 0
        """Rises when a rest begins or ends, so that a wake-up for an earlier one is known as such."""
        self.lag: int | None = None
        """How far behind the leader's high watermark it was after the last answer; None if that is not known."""


class FetcherRequest(NamedTuple):
    """What to send."""

    number: int
    session_id: int
    epoch: int
    topics: list[tuple[str | bytes, list[FetchPartition]]]
    forgotten: list[tuple[str | bytes, list[int]]]


class FetcherSession:
    def __init__(self, partition_max_bytes: int) -> None:
        self.members: dict[Partition, Followed] = {}
        self.session_id = NO_SESSION
        self.first_number = 1
        """Of the requests since the session began; answers to earlier ones count for nothing."""
        self._partition_max_bytes = partition_max_bytes
        self._epoch = FIRST_EPOCH
        self._number = 0
        self._by_id = True
        self._places: dict[Place, Followed] = {}
        self._due: dict[Followed, None] = {}
        self._forget: dict[Place, None] = {}
        self._in_session_count = 0
        self._wakes: list[tuple[float, int, Followed, int]] = []
        """A heap: when, a number to break ties, who, and the turn it is for."""
        self._wakes_count = 0

    # Partitions come and go

    def follow(self, partition: Partition) -> None:
        """Name it in the next request, whether it is new, in the session or resting."""
        followed = self.members.get(partition)
        if followed is None:
            followed = self.members[partition] = Followed(partition)
            self._place(followed)
        self.name(followed)

    def unfollow(self, partition: Partition) -> None:
        followed = self.members.pop(partition, None)
        if followed is not None:
            self._leave(followed)
            followed.turn += 1
            if self._places.get(followed.place) is followed:
                del self._places[followed.place]

    def _place(self, followed: Followed) -> None:
        partition = followed.partition
        followed.place = (partition.topic_id if self._by_id else partition.topic, partition.index)
        self._places[followed.place] = followed

    # What becomes of one

    def name(self, followed: Followed) -> None:
        """Its position changed, or its rest is over: it is named in the next request."""
        if followed.rests:
            followed.rests = False
            followed.turn += 1
        self._due[followed] = None

    def rest(self, followed: Followed, until: float | None = None) -> int:
        """Leave it out until then, or until it is named; the turn by which `wake_turn` knows this rest."""
        self._leave(followed)
        followed.rests = True
        followed.turn += 1
        if until is not None:
            self._wakes_count += 1
            heapq.heappush(self._wakes, (until, self._wakes_count, followed, followed.turn))
        return followed.turn

    def wake_turn(self, followed: Followed, turn: int) -> bool:
        """End the rest of that turn; False if it is over already, or the partition gone."""
        if followed.turn != turn:
            return False
        self.name(followed)
        return True

    def wake(self, now: float) -> None:
        """Name those whose rest is over."""
        while self._wakes and self._wakes[0][0] <= now:
            _, _, followed, turn = heapq.heappop(self._wakes)
            self.wake_turn(followed, turn)

    def next_wake(self) -> float | None:
        while self._wakes and self._wakes[0][2].turn != self._wakes[0][3]:
            heapq.heappop(self._wakes)
        return self._wakes[0][0] if self._wakes else None

    def _leave(self, followed: Followed) -> None:
        self._due.pop(followed, None)
        if followed.in_session:
            followed.in_session = False
            self._in_session_count -= 1
            if self._places[followed.place] is followed:  # else a topic of the same name has its place
                self._forget[followed.place] = None

    # Requests and answers

    @property
    def is_open(self) -> bool:
        """The leader keeps a session for us, so that a request may name no more than what changed."""
        return self._epoch != FIRST_EPOCH and self.session_id != NO_SESSION

    @property
    def is_due(self) -> bool:
        return bool(self._due)

    def begin(self, version: int | None = None, *, forget_id: bool = False) -> None:
        """The next request opens a new session, and ends the one whose id it bears; on a new connection also in this
        version."""
        if version is not None and (version >= TOPIC_ID_SINCE) != self._by_id:
            self._by_id = not self._by_id
            self._places.clear()
            for followed in self.members.values():
                self._place(followed)
        if forget_id:
            self.session_id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._in_session_count = 0
        self._forget.clear()
        self.first_number = self._number + 1
        for followed in self.members.values():
            followed.in_session = False
            if not followed.rests:
                self._due[followed] = None

    def next_request(
        self,
        on_blocked: Callable[[list[Followed]], bool],
        rest_until: Callable[[Followed], float | None] | None = None,
        *,
        only_if_named: bool = False,
    ) -> FetcherRequest | None:
        """What to send next; None if there is no partition to ask for, or no new one with `only_if_named`.

        `on_blocked` gets those that have no position to ask for, and lets them rest; if it answers True, the others
        wait with them and nothing is sent. `rest_until` says who must wait, and how long.
        """
        if self._epoch != FIRST_EPOCH and self.session_id == NO_SESSION:
            self.begin()  # the leader keeps none for us: every request names all
        topics: dict[str | bytes, list[FetchPartition]] = {}
        for _ in range(0, len(self._due), NAMED_MAX):
            named, blocked = self._positions(rest_until)
            if blocked and on_blocked(blocked):
                self._due |= dict.fromkeys(followed for followed, _ in named)
                return None
            number = self._number + 1
            for followed, asked in named:
                followed.asked = asked
                followed.asked_in = number
                if not followed.in_session:
                    followed.in_session = True
                    self._in_session_count += 1
                    self._forget.pop(followed.place, None)
                topic = followed.place[0]
                if topic in topics:
                    topics[topic].append(asked)
                else:
                    topics[topic] = [asked]
            if topics:
                break  # otherwise all were blocked or have to rest, and the next ones have their turn
        if not self._in_session_count or (only_if_named and not topics):
            return None
        forgotten: dict[str | bytes, list[int]] = {}
        if self._forget:
            for topic, index in islice(self._forget, NAMED_MAX):
                forgotten.setdefault(topic, []).append(index)
            self._forget = dict.fromkeys(islice(self._forget, NAMED_MAX, None))
        self._number += 1
        epoch = self._epoch
        self._epoch = epoch + 1 if epoch < EPOCH_MAX else 1
        return FetcherRequest(self._number, self.session_id, epoch, list(topics.items()), list(forgotten.items()))

    def _positions(
        self, rest_until: Callable[[Followed], float | None] | None
    ) -> tuple[list[tuple[Followed, FetchPartition]], list[Followed]]:
        """What to ask for those that are due, as many as fit, and those that can't be asked for."""
        due, self._due = self._due, {}
        if len(due) > NAMED_MAX:
            self._due = dict.fromkeys(islice(due, NAMED_MAX, None))
            due = dict.fromkeys(islice(due, NAMED_MAX))
        named, blocked = [], []
        for followed in due:
            if rest_until is not None and (until := rest_until(followed)) is not None:
                self.rest(followed, until)
                continue
            asked = followed.partition.fetch_position(self._partition_max_bytes)
            if asked is None:
                blocked.append(followed)
            else:
                named.append((followed, asked))
        return named, blocked

    def answered(self, session_id: int) -> None:
        """The leader answered a request of this session without an error."""
        self.session_id = session_id

    def find(self, topic: str | bytes, index: int, number: int) -> Followed | None:
        """Whom an answer to that request is for; None if it is not followed, or was named again since."""
        followed = self._places.get((topic, index))
        if followed is None or not followed.in_session or followed.asked_in > number or followed in self._due:
            return None
        return followed
