"""Any life of a log, crashes included, against a plain list.

Always true: below the recovery point nothing is lost; what is read is a prefix of what was written; epochs, producers and
offsets are those of the list. STRANDLINE_LOG_LIVES=5000 lives more lives than the few that run every time.
"""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import os
import random
from typing import NamedTuple

import pytest

from strandline.errors import KafkaError
from strandline.log import retention
from strandline.log.log import Log
from strandline.records.header import iterate

from .conftest import ALL, NOW, PoweredLogDir, batch, topic, values_in

LIVES = int(os.environ.get("STRANDLINE_LOG_LIVES", "30"))
STEPS = 60
FIELDS = {"segment_bytes": 1000, "index_interval_bytes": 200, "retention_bytes": 2500, "retention_ms": -1}


class Written(NamedTuple):
    """One batch, as the model remembers it."""

    base_offset: int
    values: tuple[str, ...]
    epoch: int
    producer_id: int
    base_sequence: int

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.values)


class Life:
    def __init__(self, seed: int) -> None:
        self.randomness = random.Random(seed)
        self.directory = PoweredLogDir(seed)
        self.log: Log = self.directory.open(**FIELDS)
        self.batches: list[Written] = []
        self.epoch = 0
        self.start = 0
        self.checkpoint = 0
        """The recovery point that a crash would find."""
        self.named = 0

    # What may happen

    def append(self) -> None:
        count = self.randomness.randint(1, 4)
        self.named += 1
        values = tuple(f"v{self.named}.{i}." + "x" * self.randomness.choice([0, 10, 200]) for i in range(count))
        producer_id = self.randomness.choice([-1, 1, 2, 3])
        sequence = self.next_sequence(producer_id)
        data = self.data(values, producer_id, sequence)
        appended = self.log.append_as_leader(data, self.epoch, NOW)
        assert appended.base_offset == self.end
        self.batches.append(Written(self.end, values, self.epoch, producer_id, sequence))

    def append_many(self) -> None:
        for _ in range(self.randomness.randint(2, 8)):
            self.append()

    def retry(self) -> None:
        """The last batch of a producer comes again: it is known if its producer still is."""
        written = next((b for b in reversed(self.batches) if b.producer_id >= 0), None)
        if written is not None and written.producer_id in self.log.producers.by_id:
            data = self.data(written.values, written.producer_id, written.base_sequence)
            assert self.log.append_as_leader(data, self.epoch, NOW).base_offset == written.base_offset
            assert self.log.log_end_offset == self.end

    def new_epoch(self) -> None:
        self.epoch += self.randomness.randint(1, 3)
        self.log.epochs.assign(self.epoch, self.log.log_end_offset)

    def roll(self) -> None:
        self.log.roll(NOW)

    def flush(self) -> None:
        self.directory.flush(self.log)
        assert self.log.recovery_point == self.end
        self.checkpoint = self.log.recovery_point

    def truncate(self) -> None:
        """As a follower does, which then writes down how far it is sure, as its node must."""
        cut = self.randomness.randint(max(self.start, self.end - 12), self.end)
        boundaries = [self.end, *(written.base_offset for written in self.batches)]
        self.log.truncate_to(cut)
        self.cut(max(boundary for boundary in boundaries if boundary <= cut))
        self.start = min(self.start, self.end)
        self.checkpoint = min(self.checkpoint, self.log.recovery_point)
        self.new_epoch()

    def delete_records(self) -> None:
        self.start = self.randomness.randint(self.start, min(self.end, self.start + 5))
        self.log.advance_start(self.start)

    def retain(self) -> None:
        count = retention.due(self.log, self.end, NOW)
        if count:
            self.log.drop_segments(count, NOW)
            self.start = max(self.start, self.log.log_start_offset)

    def restart(self) -> None:
        self.log.close_clean()
        self.log = self.directory.open(start=self.start, **FIELDS)
        assert self.log.recovery_point == self.end
        self.checkpoint = self.end

    def kill(self) -> None:
        """The process dies: what it wrote is all there, the indexes of the last segment are not."""
        self.directory.node.kill()
        self.directory.node.restart()
        self.log = self.directory.recover(recovery_point=self.checkpoint, start=self.start, **FIELDS).log
        self.checkpoint = self.end

    def power_loss(self) -> None:
        self.directory.power_loss()
        self.log = self.directory.recover(recovery_point=self.checkpoint, start=self.start, **FIELDS).log
        end = self.log.log_end_offset
        assert end >= self.checkpoint, "flushed records are gone"
        if end not in {self.base, *(written.next_offset for written in self.batches)}:
            assert end == self.start, "the log ends within a batch"
            self.batches.clear()
        self.cut(end)
        self.checkpoint = end

    # The model

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.base

    base = 0
    """Where the log would begin if every batch were gone."""

    def cut(self, end: int) -> None:
        while self.batches and self.batches[-1].next_offset > end:
            self.batches.pop()
        if not self.batches:
            self.base = end

    def next_sequence(self, producer_id: int) -> int:
        if producer_id < 0:
            return -1
        known = self.log.producers.by_id.get(producer_id)
        return known.last_sequence + 1 if known is not None else 0

    def data(self, values: tuple[str, ...], producer_id: int, sequence: int) -> memoryview:
        epoch = 0 if producer_id >= 0 else -1
        return batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)

    def check(self) -> None:
        self.log.check_invariants()
        log = self.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        assert self.checkpoint <= log.recovery_point <= log.log_end_offset
        self.check_contents()
        self.check_epochs()
        self.check_producers()

    def check_contents(self) -> None:
        expected = [
            (written.base_offset + i, value)
            for written in self.batches
            for i, value in enumerate(written.values)
            if written.base_offset + i >= self.start
        ]
        found: list[tuple[int, str]] = []
        offset = self.start
        while data := self.log.read(offset, self.randomness.choice([1, 300, ALL]), self.end, min_one=True):
            found += [(at, value) for at, value in values_in(data) if at >= self.start]
            offset = [header.next_offset for _, header in iterate(data)][-1]
        assert found == expected
        if self.end > self.start:
            at = self.randomness.randrange(self.start, self.end)
            data = self.log.read(at, 1, self.end, min_one=True)
            assert at in [offset for offset, _ in values_in(data)]
        for outside in (self.start - 1, self.end + 1):
            with pytest.raises(KafkaError):
                self.log.read(outside, 1, self.end, min_one=True)

    def check_epochs(self) -> None:
        for written in self.batches:
            if written.base_offset >= self.start:
                assert self.log.epochs.epoch_at(written.base_offset) == written.epoch
                _, end_offset = self.log.epochs.end_offset_for(written.epoch, self.end)
                assert end_offset >= written.next_offset

    def check_producers(self) -> None:
        last = {written.producer_id: written for written in self.batches if written.base_offset >= self.start}
        for producer_id, written in last.items():
            if producer_id >= 0:
                newest = self.log.producers.by_id[producer_id].batches[-1]
                assert (newest.first_offset, newest.first_sequence) == (written.base_offset, written.base_sequence)


HAPPENINGS = {
    Life.append: 20,
    Life.append_many: 10,
    Life.retry: 5,
    Life.new_epoch: 4,
    Life.roll: 3,
    Life.flush: 8,
    Life.truncate: 3,
    Life.delete_records: 3,
    Life.retain: 3,
    Life.restart: 3,
    Life.kill: 3,
    Life.power_loss: 4,
}


def live(seed: int) -> None:
    life = Life(seed)
    try:
        for step in range(STEPS):
            (happening,) = life.randomness.choices(list(HAPPENINGS), list(HAPPENINGS.values()))
            try:
                happening(life)
                life.check()
            except BaseException as error:
                error.add_note(f"seed {seed}, step {step}: {happening.__name__}")
                raise
    finally:
        life.directory.world.close()


@pytest.mark.parametrize("part", range(10))
def test_any_life_of_a_log(part: int) -> None:
    assert topic(**FIELDS).delete
    for seed in range(part, LIVES, 10):
        live(seed)
