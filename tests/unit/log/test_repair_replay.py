"""What a repaired stretch says of transactions and producers counts again, in memory and on the device (TXN-P31)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.errors import KafkaError
from strandline.log.effects import LogWork, OffloadWork
from strandline.log.errors import CorruptBatch
from strandline.log.log import Log
from strandline.log.names import offset_of
from strandline.log.opening import open_segment
from strandline.log.repairing import DoesNotFit, repair
from strandline.log.txn_index import AbortedTxn
from strandline.node.log_effects import perform
from strandline.records.control import ControlRecordType
from strandline.records.header import iterate

from .conftest import ALL, NOW, PoweredLogDir, batch, marker

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT
CHECKSUM_AT = 17


def send(log: Log, producer_id: int = 5, sequence: int = 0, *, transactional: bool = True) -> None:
    log.append_as_leader(
        batch("a", producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=transactional),
        0,
        NOW,
    )


def end(log: Log, kind: ControlRecordType, producer_id: int = 5) -> None:
    log.append_own(marker(kind, producer_id, 0), 0, NOW)


def plain(log: Log) -> None:
    log.append_as_leader(batch("p"), 0, NOW)


class RottenLog:
    """A log whose batch at one offset rotted while its node was down; the scan of the next start has passed over it."""

    def __init__(
        self, directory: PoweredLogDir, fill: Callable[[Log], None], offset: int, high_watermark: int | None = None
    ) -> None:
        self.directory = directory
        log = directory.open()
        fill(log)
        directory.flush(log)
        self.end_offset = log.log_end_offset
        self.state = state_of(log)
        data = b"".join(bytes(segment.read(0, segment.size)) for segment in log.segments)
        self.batches = {header.base_offset: data[at : at + header.size_bytes] for at, header in iterate(data)}
        segment = log.segments[log.segments.position_of(offset)]
        found = segment.locate(offset, blocking=True)
        assert found is not None
        log.close()
        newer = [name for name in directory.names(".snapshot") if offset_of(name) > offset]
        for name in (*newer, *directory.names(".index")):
            directory.disk.remove(directory.file(name))
        directory.node.disk.flip_bit(segment.file.path, found[0] + CHECKSUM_AT, 1)
        recovered = directory.recover(
            recovery_point=self.end_offset,
            high_watermark=self.end_offset if high_watermark is None else high_watermark,
        )
        self.log = recovered.log
        [self.damaged] = recovered.damaged
        assert self.damaged.first_offset == offset

    def repair(self) -> bool:
        good = self.batches[self.damaged.first_offset]
        done: bool = self.directory.world.run(perform(repair(self.log, self.damaged, good, NOW)))
        return done

    def restarted(self, *, clean: bool, high_watermark: int | None = None) -> Log:
        end_offset = self.log.log_end_offset
        if clean:
            self.log.close_clean()
        else:
            self.directory.flush(self.log)
            self.directory.power_loss()
        self.log = self.directory.recover(
            clean=clean,
            recovery_point=end_offset,
            high_watermark=end_offset if high_watermark is None else high_watermark,
        ).log
        return self.log


def state_of(log: Log) -> tuple[object, ...]:
    """What readers of committed records and producers hang on."""
    producers = {
        producer.producer_id: (producer.epoch, tuple(producer.batches), producer.current_txn_first_offset)
        for producer in log.producers.by_id.values()
    }
    end_offset = log.log_end_offset
    return producers, log.producers.first_unstable_offset(end_offset), log.aborted_between(0, end_offset)


def perform_with(work: LogWork[bool], meanwhile: Callable[[], None]) -> bool:
    """Perform the work step by step; after each something else happens before it goes on."""
    try:
        effect = next(work)
        while True:
            assert isinstance(effect, OffloadWork)
            result = effect.work()
            meanwhile()
            effect = work.send(result)
    except StopIteration as stop:
        done: bool = stop.value
        return done


def one_segment(kind: ControlRecordType) -> Callable[[Log], None]:
    def fill(log: Log) -> None:
        send(log)  # 0
        end(log, kind)  # 1
        plain(log)  # 2
        log.roll(NOW)
        plain(log)  # 3

    return fill


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_txn_p31_both_ends_of_a_transaction_come_back(
    powered: PoweredLogDir, kind: ControlRecordType, offset: int, clean: bool
) -> None:
    rotten = RottenLog(powered, one_segment(kind), offset)
    assert state_of(rotten.log) != rotten.state
    assert rotten.repair()
    assert state_of(rotten.log) == rotten.state
    assert powered.names(".repair") == []
    assert state_of(rotten.restarted(clean=clean)) == rotten.state


@pytest.mark.parametrize("clean", [True, False])
def test_txn_p31_the_index_of_a_later_segment_is_made_right_too(powered: PoweredLogDir, clean: bool) -> None:
    def fill(log: Log) -> None:
        send(log, 6)  # 0, open for long
        send(log, 5)  # 1, the whole of this transaction
        log.roll(NOW)
        send(log, 7)  # 2
        end(log, ABORT, 5)  # 3
        log.roll(NOW)
        end(log, ABORT, 7)  # 4
        end(log, ABORT, 6)  # 5
        plain(log)  # 6

    rotten = RottenLog(powered, fill, 1)
    assert AbortedTxn(5, 1, 3, 0) not in rotten.log.aborted_between(0, 7)
    assert rotten.repair()
    assert state_of(rotten.log) == rotten.state
    log = rotten.restarted(clean=clean)
    assert state_of(log)[1:] == rotten.state[1:]
    assert log.aborted_between(1, 2) == [AbortedTxn(5, 1, 3, 0), AbortedTxn(6, 0, 5, 6)]


def test_txn_p31_the_same_producer_may_have_gone_on_behind_the_rotten_marker(powered: PoweredLogDir) -> None:
    def fill(log: Log) -> None:
        send(log)  # 0
        end(log, ABORT)  # 1
        send(log, sequence=1)  # 2
        end(log, COMMIT)  # 3

    rotten = RottenLog(powered, fill, 1)
    assert rotten.repair()
    assert rotten.log.aborted_between(0, 4) == [AbortedTxn(5, 0, 1, 2)]
    assert state_of(rotten.log) == rotten.state


def test_c1_a_repeated_batch_is_known_again(powered: PoweredLogDir) -> None:
    def fill(log: Log) -> None:
        for sequence in range(3):
            send(log, sequence=sequence, transactional=False)
        plain(log)

    rotten = RottenLog(powered, fill, 2)
    with pytest.raises(KafkaError):
        send(rotten.log, sequence=3, transactional=False)
    assert rotten.repair()
    for sequence in range(4):
        send(rotten.log, sequence=sequence, transactional=False)
    assert rotten.log.log_end_offset == 5


@pytest.mark.parametrize("rolls", [False, True])
def test_what_is_appended_while_a_repair_is_under_way_counts(powered: PoweredLogDir, rolls: bool) -> None:
    """In each step a transaction that began before is aborted, and another begins."""

    def fill(log: Log) -> None:
        send(log, 5)  # 0, the whole of this transaction
        plain(log)  # 1
        log.roll(NOW)
        end(log, ABORT, 5)  # 2
        send(log, 100)  # 3

    rotten = RottenLog(powered, fill, 0)
    log = rotten.log
    producer_id = 100

    def go_on() -> None:
        nonlocal producer_id
        log.check_invariants()
        end(log, ABORT, producer_id)
        producer_id += 1
        send(log, producer_id)
        if rolls:
            log.roll(NOW)

    assert perform_with(repair(log, rotten.damaged, rotten.batches[0], NOW), go_on)
    log.check_invariants()
    found = log.aborted_between(0, log.log_end_offset)
    assert found[0] == AbortedTxn(5, 0, 2, 3)
    assert [aborted.producer_id for aborted in found[1:]] == list(range(100, producer_id))
    expected = state_of(log)
    log = rotten.restarted(clean=True)
    assert state_of(log)[1:] == expected[1:]


@pytest.mark.parametrize("written", ["before", "meanwhile"])
def test_snapshots_that_were_made_without_it_are_gone(powered: PoweredLogDir, written: str) -> None:
    rotten = RottenLog(powered, one_segment(COMMIT), 1)
    log = rotten.log
    log.roll(NOW)
    plain(log)
    if written == "before":
        powered.flush(log)
        assert rotten.repair()
    else:
        flush = log.flush()
        effect = next(flush)
        assert isinstance(effect, OffloadWork)
        assert rotten.repair()
        effect.work()
        for _ in flush:
            pass
    assert rotten.restarted(clean=False, high_watermark=4).producers.first_unstable_offset(5) is None


def test_an_end_that_is_not_replicated_is_not_stable_after_a_repair_either(powered: PoweredLogDir) -> None:
    def fill(log: Log) -> None:
        send(log, 6)  # 0
        end(log, COMMIT, 6)  # 1
        log.roll(NOW)
        send(log)  # 2
        plain(log)  # 3

    rotten = RottenLog(powered, fill, 2, high_watermark=1)
    assert rotten.log.producers.first_unstable_offset(1) == 0
    assert rotten.repair()
    assert rotten.log.producers.first_unstable_offset(1) == 0
    assert rotten.log.producers.first_unstable_offset(2) == 2


def test_c1_what_the_log_still_knows_it_goes_on_knowing(powered: PoweredLogDir) -> None:
    """The rot was met by a reader; a snapshot has the last batch of each producer alone."""
    log = powered.open()
    for sequence in range(3):
        send(log, sequence=sequence, transactional=False)
    log.roll(NOW)
    send(log, sequence=3, transactional=False)
    log.roll(NOW)
    powered.flush(log)
    good = bytes(log.read(3, ALL, 4, min_one=True))
    powered.node.disk.flip_bit(log.segments[1].file.path, CHECKSUM_AT, 1)
    log.segments[1].checked.forget(log.segments[1].size)
    with pytest.raises(CorruptBatch) as met:
        log.read(3, ALL, 4, min_one=True)
    assert powered.world.run(perform(repair(log, met.value, good, NOW)))
    for sequence in range(4):
        send(log, sequence=sequence, transactional=False)
    assert log.log_end_offset == 4


def test_a_log_that_is_cleaned_meanwhile_is_repaired_later(powered: PoweredLogDir) -> None:
    def fill(log: Log) -> None:
        one_segment(ABORT)(log)
        log.roll(NOW)

    rotten = RottenLog(powered, fill, 0)
    log = rotten.log

    def clean() -> None:
        cleaned = open_segment(powered.disk, log.directory, 3, log.config, NOW)
        cleaned.offset_index.load()
        cleaned.time_index.load()
        cleaned.load_end()
        log.retired.add(log.segments.replace(1, 2, [cleaned]))

    with pytest.raises(DoesNotFit, match="cleaned meanwhile"):
        perform_with(repair(log, rotten.damaged, rotten.batches[0], NOW), clean)
    assert powered.names(".repair") == []
    assert rotten.repair()
    assert state_of(log) == rotten.state


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("steps", range(1, 5))
def test_a18_after_a_crash_in_the_middle_it_is_rotten_still_or_known(seed: int, steps: int) -> None:
    powered = PoweredLogDir(seed)
    rotten = RottenLog(powered, one_segment(ABORT), 1)
    powered.flush(rotten.log)
    work = repair(rotten.log, rotten.damaged, rotten.batches[1], NOW)
    effect = next(work)
    for _ in range(steps):
        assert isinstance(effect, OffloadWork)
        try:
            effect = work.send(effect.work())
        except StopIteration:
            break
    powered.power_loss()
    recovered = powered.recover(recovery_point=4, high_watermark=4)
    log = recovered.log
    position, size = log.segments[0].locate(1, blocking=True) or (0, 0)
    is_whole = log.segments[0].read(position, size) == rotten.batches[1]
    assert not is_whole or log.aborted_between(0, 3) == [AbortedTxn(5, 0, 1, 2)]
    work.close()
    powered.world.close()


def test_a_log_that_is_cut_meanwhile_is_left_alone(powered: PoweredLogDir) -> None:
    rotten = RottenLog(powered, one_segment(ABORT), 0)
    work = repair(rotten.log, rotten.damaged, rotten.batches[0], NOW)
    assert not perform_with(work, lambda: rotten.log.truncate_to(2))
    assert powered.names(".repair") == []
    rotten.log.check_invariants()


def test_a_transaction_whose_marker_was_cleaned_away_stays_ended(powered: PoweredLogDir) -> None:
    """The snapshot below the stretch says that it is open, and no marker tells otherwise any more."""

    def fill(log: Log) -> None:
        send(log, 6)  # 0
        log.roll(NOW)
        send(log)  # 1
        end(log, COMMIT)  # 2

    rotten = RottenLog(powered, fill, 1)
    rotten.log.producers.forget_open(6)
    assert rotten.repair()
    assert rotten.log.producers.first_unstable_offset(3) is None


def test_an_index_that_can_not_be_read_puts_the_repair_off(powered: PoweredLogDir) -> None:
    rotten = RottenLog(powered, one_segment(ABORT), 0)
    powered.disk.open(powered.file(f"{0:020d}.txnindex"), create=True).append(b"?")
    rotten.log.segments[0].txn_index.close()
    rotten.log.segments[0].txn_index = type(rotten.log.segments[0].txn_index)(
        powered.disk, powered.file(f"{0:020d}.txnindex")
    )
    with pytest.raises(DoesNotFit, match="can't be read again"):
        rotten.repair()
    assert powered.names(".repair") == []
