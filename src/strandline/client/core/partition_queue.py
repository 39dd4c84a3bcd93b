"""The batches of one partition, and the rules that keep them in order and in the log once.

Idempotence rests on the broker: it takes a batch only if its sequence follows the last one it has from this producer
id, and knows the last five batches again. This side keeps what that needs:

 1. A batch gets its sequence when it is first sent, and keeps it, bytes and all, for every further attempt. So a batch
    whose reply was lost is recognised, on whatever connection it comes again.
 2. At most five batches are sent and not yet resolved, so that the broker remembers each of them.
 3. A batch follows others that are in flight only on their own connection, where bytes cannot overtake. One that is sent
    again waits until every earlier batch is resolved or in flight before it on that connection; later ones that are already
    in flight do not matter, since the broker refuses them until it has this one, and then they are sent again too.
 4. The first batch under a producer id goes alone. A broker that does not know an id takes any sequence, so a second batch
    could otherwise get in where the first was refused.
 5. If a batch is given up, the sequences after it have a gap. The partition then waits until nothing is in flight, and goes
    on under a new producer id, from sequence 0. A batch that was surely not appended moves to the new id; one that may have
    been appended must not, since the broker could not recognise it, and fails with the error that it met. Inside a
    transaction nothing goes on under another id: the transaction is aborted (TXN-TC5), and the next begins at sequence 0.

Always true: `queue` and `in_flight` are in the order of `send`, and batches with a sequence come before those without.
Without idempotence only the order of the queue is kept: a batch that is sent again may come after a later one.
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Callable

from strandline.client.core.batches import NO_IDENTITY, ProducerBatch, ProducerIdentity, RecordsBatch, add_sequence
from strandline.client.core.whole_batches import Receipt, WholeBatch
from strandline.errors import KafkaError
from strandline.records.compression import CompressionType
from strandline.records.header import NO_SEQUENCE
from strandline.records.ready import ReadyBatch

UNRESOLVED_MAX = 5
"""Batches of a producer that a broker recognises when they come again."""


def _number(batch: ProducerBatch) -> tuple[int, ...]:
    return batch.number


class PartitionQueue:
    __slots__ = (
        "_idempotent",
        "_next_number",
        "_unresolved_max",
        "failures",
        "identity",
        "in_flight",
        "is_proven",
        "needs_reset",
        "next_sequence",
        "partition",
        "queue",
        "retry_at",
        "topic",
    )

    def __init__(self, topic: str, partition: int, *, idempotent: bool, in_flight_max: int) -> None:
        self.topic = topic
        self.partition = partition
        self.queue: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        self.identity: ProducerIdentity = NO_IDENTITY
        self.next_sequence = 0
        self.is_proven = False
        """The broker has taken a batch under this identity."""
        self.needs_reset = False
        """The sequences have a gap: go on under a new identity."""
        self.retry_at = 0.0
        self.failures = 0
        self._idempotent = idempotent
        self._unresolved_max = min(in_flight_max, UNRESOLVED_MAX) if idempotent else in_flight_max
        self._next_number = 0

    @property
    def is_idle(self) -> bool:
        return not self.queue and not self.in_flight

    def open_batch(self, now: float, deadline: float) -> RecordsBatch:
        """A new batch at the end."""
        batch = RecordsBatch(self.topic, self.partition, self._number_next(), now, deadline)
        self.queue.append(batch)
        return batch

    def add_whole(self, ready: ReadyBatch, receipt: Receipt, now: float, deadline: float) -> WholeBatch:
        """A batch that has all its records, at the end."""
        batch = WholeBatch(self.topic, self.partition, self._number_next(), now, deadline, ready, receipt)
        self.queue.append(batch)
        return batch

    def _number_next(self) -> tuple[int, ...]:
        self._next_number += 1
        return (self._next_number - 1,)

    # Sending

    def next_for(self, link: object) -> ProducerBatch | None:
        """The first batch of the queue, if the rules let it go out on this connection."""
        if not self.queue:
            return None
        batch = self.queue[0]
        if not self._idempotent:
            return batch if len(self.in_flight) < self._unresolved_max else None
        if self.identity is NO_IDENTITY:
            return None
        if self.needs_reset:
            # Rule 5, but first learn what became of a batch that may be in the log: the broker recognises it now.
            return batch if batch.uncertain and not self.in_flight else None
        if self.in_flight and not batch.number < self.in_flight[0].number:
            follows = batch.number > self.in_flight[-1].number and all(sent.link is link for sent in self.in_flight)
            if not follows or not self.is_proven or len(self.in_flight) >= self._unresolved_max:
                return None
        return batch

    def take(self, link: object, codec: CompressionType, level: int | None) -> ProducerBatch:
        """The first batch, sealed, now in flight on this connection."""
        batch = self.queue.popleft()
        if batch.data is None:
            if not self._idempotent:
                batch.seal(NO_IDENTITY, NO_SEQUENCE, codec, level)
            elif batch.is_sequenced:  # a half of a batch that was split
                batch.seal(self.identity, batch.base_sequence, codec, level)
            else:
                batch.seal(self.identity, self.next_sequence, codec, level)
                self.next_sequence = add_sequence(self.next_sequence, batch.records_count)
        batch.attempts += 1
        batch.link = link
        bisect.insort(self.in_flight, batch, key=_number)
        return batch

    # What became of a batch

    def acknowledged(self, batch: ProducerBatch) -> None:
        self.in_flight.remove(batch)
        self.is_proven = True
        self.failures = 0

    def put_back(self, batch: ProducerBatch, *, certain: bool) -> None:
        """It is sent again, in its place."""
        self.in_flight.remove(batch)
        batch.uncertain = batch.uncertain or not certain
        self._insert(batch)

    def out_of_sequence(self, batch: ProducerBatch) -> bool:
        """The broker refused its sequence. True if it is put back, False if it has to fail."""
        has_earlier = self.has_earlier(batch)
        self.in_flight.remove(batch)
        if not has_earlier:
            # What the broker had acknowledged before is gone there, or a batch before this one was given up.
            self.needs_reset = True
            if batch.uncertain:
                return False
        self._insert(batch)
        return True

    def has_earlier(self, batch: ProducerBatch) -> bool:
        """It is in flight, and one before it is not in the log."""
        return bool(self.queue and self.queue[0].number < batch.number) or self.in_flight[0] is not batch

    def split(self, batch: ProducerBatch) -> None:
        self.in_flight.remove(batch)
        for half in reversed(batch.split()):
            self._insert(half)

    def given_up(self, batch: ProducerBatch, *, certain: bool) -> None:
        """It will not be sent again. It is in flight or in the queue, or was just taken out of both."""
        if batch in self.in_flight:
            self.in_flight.remove(batch)
        elif batch in self.queue:
            self.queue.remove(batch)
        if not batch.is_sequenced:
            return
        is_last = add_sequence(batch.base_sequence, batch.records_count) == self.next_sequence
        if is_last and certain and not batch.uncertain and not self.needs_reset:
            self.next_sequence = batch.base_sequence  # never in the log, and nothing follows it: its numbers are free
        else:
            self.needs_reset = True

    def _insert(self, batch: ProducerBatch) -> None:
        index = bisect.bisect_left(self.queue, batch.number, key=_number)
        self.queue.insert(index, batch)

    # Identity

    @property
    def wants_identity(self) -> bool:
        if not self._idempotent or not self.queue or self.in_flight:
            return False
        return self.identity is NO_IDENTITY or (self.needs_reset and not self.queue[0].uncertain)

    def identify(self, identity: ProducerIdentity, give_up: Callable[[ProducerBatch], None]) -> None:
        """Go on under this identity, from sequence 0."""
        assert not self.in_flight, "an identity changes only when nothing is in flight"
        kept: deque[ProducerBatch] = deque()
        for batch in self.queue:
            if batch.uncertain:
                give_up(batch)
            else:
                batch.unseal()
                kept.append(batch)
        self.queue = kept
        self.identity, self.next_sequence = identity, 0
        self.is_proven = self.needs_reset = False

    def expired(self, now: float) -> list[ProducerBatch]:
        """Batches of the queue whose time is over; those in flight are waited for."""
        return [batch for batch in self.queue if batch.deadline <= now]

    def fail_all(self, error: KafkaError) -> list[ProducerBatch]:
        """Give everything up, for good: the producer closes."""
        batches = [*self.in_flight, *self.queue]
        self.in_flight.clear()
        self.queue.clear()
        for batch in batches:
            batch.fail(error)
        return batches
