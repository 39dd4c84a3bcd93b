"""The judges of aborted transactions, of producers and of offsets in transactions notice what differs from the log."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from strandline.groups.records import OffsetCommitKey, OffsetCommitValue
from strandline.histories.exchanges import FETCH, AskedPosition, BrokerExchange
from strandline.histories.judges.transactions.aborted_index import AbortedIndexMatchesLog
from strandline.histories.judges.transactions.aborted_lists import AbortedListMatchesLog
from strandline.histories.judges.transactions.offsets_follow_markers import OffsetsFollowMarkers
from strandline.histories.judges.transactions.offsets_match_copies import OffsetsMatchCopies
from strandline.histories.judges.transactions.producers_match_log import ProducersMatchLog
from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.plan import COPIERS
from strandline.log.txn_index import ENTRY
from strandline.transactions.states import TransactionState
from strandline.wire.fetch import FetchedPartition, write_response

from .stage import COPY, KEY, NAME, OFFSETS, PRODUCER, Stage

VERSION = 17
"""Of Fetch."""
OTHER = 8


def interleaved(stage: Stage) -> None:
    """Offsets 0-1 of one producer, 2 of another, 3 its abort; 4 more of the first, 5 its abort."""
    stage.data(0, b"a", b"b")
    stage.write(stage.log.data(OTHER, 0, b"c"))
    stage.write(stage.log.marker(OTHER, 1, commit=False))
    stage.write(stage.log.data(PRODUCER, 0, b"d", sequence=2))
    stage.marker(1, commit=False)


def fetched(
    stage: Stage,
    offset: int,
    *batches: int,
    told: list[tuple[int, int]] | None,
    stable: int = 6,
    committed: bool = True,
) -> None:
    """A consumer gets those batches of the log."""
    exchange = BrokerExchange(FETCH, VERSION, 0.0)
    exchange.reads_committed = committed
    exchange.asked = {(bytes(KEY[0]), 0): AskedPosition(-1, offset)}
    records = b"".join(stage.log.batches[n].content for n in batches)
    answer = FetchedPartition(0, 0, 6, stable, 0, records, told)
    body = write_response(VERSION, [(KEY[0], [answer])])
    exchange.response = bytes(5) + b"".join(bytes(part) for part in body)
    stage.judge.fetched(stage.seen, 1, exchange)


def test_txn_ti14_the_list_is_of_what_the_bytes_hold_and_of_what_began_before_them() -> None:
    stage = Stage(AbortedListMatchesLog())
    interleaved(stage)
    fetched(stage, 0, 0, 1, 2, told=[(PRODUCER, 0), (OTHER, 2)])
    fetched(stage, 0, 0, told=[(PRODUCER, 0)])
    fetched(stage, 3, 2, 3, told=[(PRODUCER, 0), (OTHER, 2)])
    fetched(stage, 4, 3, 4, told=[(PRODUCER, 0)])
    fetched(stage, 6, told=[])
    fetched(stage, 0, 0, 1, told=None, committed=False)


@pytest.mark.parametrize(
    ("offset", "batches", "told"),
    [
        (0, (0, 1), [(PRODUCER, 0)]),
        (0, (0,), [(PRODUCER, 0), (OTHER, 2)]),
        (4, (3, 4), []),
        (4, (3, 4), [(PRODUCER, 1)]),
        (4, (3, 4), [(PRODUCER, 0), (OTHER, 2)]),
    ],
)
def test_txn_ti14_another_list_is_noticed(offset: int, batches: tuple[int, ...], told: list[tuple[int, int]]) -> None:
    stage = Stage(AbortedListMatchesLog())
    interleaved(stage)
    with pytest.raises(Violation, match="tells of"):
        fetched(stage, offset, *batches, told=told)


def test_txn_ti14_bytes_end_before_what_is_not_stable_and_other_readers_are_told_nothing() -> None:
    stage = Stage(AbortedListMatchesLog())
    interleaved(stage)
    with pytest.raises(Violation, match="stable to 2"):
        fetched(stage, 0, 0, 1, told=[(PRODUCER, 0), (OTHER, 2)], stable=2)
    with pytest.raises(Violation, match="all records"):
        fetched(stage, 0, 0, told=[], committed=False)


def entries(*found: tuple[int, int, int, int]) -> bytes:
    return b"".join(ENTRY.pack(0, *each) for each in found)


def test_txn_ti14_the_index_is_what_the_batches_say_in_the_segment_of_the_marker() -> None:
    stage = Stage(AbortedIndexMatchesLog())
    interleaved(stage)
    stage.seen.index = [
        (0, 4, entries((OTHER, 2, 3, 0))),
        (4, 6, entries((PRODUCER, 0, 5, 6))),
    ]
    stage.look()
    stage.data(1)
    stage.marker(2)  # a commit is not in it
    stage.look()


@pytest.mark.parametrize(
    "index",
    [
        [(0, 6, entries((OTHER, 2, 3, 0)))],
        [(0, 6, entries((PRODUCER, 0, 5, 6), (OTHER, 2, 3, 0)))],
        [(0, 4, entries((OTHER, 2, 3, 0), (PRODUCER, 0, 5, 6))), (4, 6, b"")],
        [(0, 6, entries((OTHER, 2, 3, 4), (PRODUCER, 0, 5, 6)))],
        [(0, 6, entries((OTHER, 2, 3, 0), (PRODUCER, 0, 5, 6)) + b"\0")],
    ],
)
def test_txn_ti14_another_index_is_noticed(index: list[tuple[int, int, bytes]]) -> None:
    stage = Stage(AbortedIndexMatchesLog())
    interleaved(stage)
    stage.seen.index = index
    with pytest.raises(Violation):
        stage.look()


def remember(stage: Stage, **changes: int) -> None:
    """As the broker has the producer in memory."""
    known = stage.known.producers[PRODUCER]
    values: dict[str, Any] = {
        "epoch": known.epoch,
        "coordinator_epoch": known.coordinator_epoch,
        "last_sequence": known.last_sequence,
        "last_offset": known.last_offset,
        "current_txn_first_offset": known.open_from,
    }
    stage.replica.log.producers.by_id[PRODUCER] = SimpleNamespace(**(values | changes))


def test_txn_ti14_producers_are_what_the_batches_say() -> None:
    stage = Stage(ProducersMatchLog(), version=0)
    stage.data(0, b"a", b"b")
    known = stage.known.producers[PRODUCER]
    assert (known.epoch, known.last_sequence, known.last_offset, known.open_from) == (0, 1, 1, 0)
    remember(stage)
    stage.look()
    stage.marker(0, coordinator_epoch=3)
    assert (known.last_sequence, known.open_from, known.coordinator_epoch) == (1, -1, 3), "an equal epoch keeps them"
    remember(stage)
    stage.look()
    stage.marker(1)
    assert (known.epoch, known.last_sequence, known.last_offset) == (1, -1, -1)
    remember(stage)
    stage.look()


@pytest.mark.parametrize(
    "changes",
    [
        {"epoch": 1},
        {"coordinator_epoch": 0},
        {"last_sequence": -1},
        {"last_offset": 0},
        {"current_txn_first_offset": -1},
    ],
)
def test_txn_ti14_a_producer_that_is_remembered_otherwise_is_noticed(changes: dict[str, int]) -> None:
    stage = Stage(ProducersMatchLog())
    stage.data(0, b"a", b"b")
    remember(stage, **changes)
    with pytest.raises(Violation, match="is remembered with"):
        stage.look()


def test_txn_ti14_a_producer_that_is_forgotten_is_noticed() -> None:
    stage = Stage(ProducersMatchLog())
    stage.data(0)
    with pytest.raises(Violation, match="is forgotten"):
        stage.look()
    stage.replica.is_offline = True
    stage.look()


def has(stage: Stage, offset: int) -> None:
    """The copiers' coordinator has it in memory."""
    key = OffsetCommitKey(group=COPIERS, topic=NAME[0], partition=NAME[1])
    stage.seen.offsets.replay(key, OffsetCommitValue(offset=offset, metadata="", commit_timestamp=1))


def test_txn_ti10_offsets_count_with_their_commit_marker() -> None:
    stage = Stage(OffsetsFollowMarkers())
    stage.add(OFFSETS)
    stage.offsets(0, 5)
    stage.look(OFFSETS)
    stage.marker(1, name=OFFSETS)
    with pytest.raises(Violation, match="has -1 for ledger-0, and committed transactions have 5"):
        stage.look(OFFSETS)
    has(stage, 5)
    stage.look(OFFSETS)
    stage.offsets(1, 9)
    stage.look(OFFSETS)
    stage.marker(2, commit=False, name=OFFSETS)
    stage.look(OFFSETS)
    has(stage, 9)
    with pytest.raises(Violation, match="has 9"):
        stage.look(OFFSETS)


def test_txn_ti10_of_two_transactions_the_later_record_counts() -> None:
    stage = Stage(OffsetsFollowMarkers())
    stage.add(OFFSETS)
    log = stage.logs[OFFSETS]
    stage.offsets(0, 5)
    first = stage.seen.logs[1, stage.seen.all_places[OFFSETS].key].open[PRODUCER]
    later = log.records(OTHER, 0, *[(r.key, r.value) for r in _records(first)])
    stage.write(later, OFFSETS)
    stage.write(log.marker(OTHER, 1, commit=True), OFFSETS)
    stage.marker(1, commit=True, name=OFFSETS)
    has(stage, 5)
    stage.look(OFFSETS)


def _records(transaction: Any) -> list[Any]:
    from strandline.records.batch import decode

    return [record for batch in transaction.batches for record in decode(batch.content, check_crc=False)]


def copied(stage: Stage, *copies: bytes, offset: int, epoch: int = 1) -> None:
    """A copier's transaction with these copies is committed, as far as its coordinator and its offsets go."""
    stage.data(epoch, *copies, name=COPY)
    stage.offsets(epoch, offset)
    stage.commit(TransactionState.PREPARE_COMMIT, epoch + 1, COPY, OFFSETS)
    stage.marker(epoch + 1, name=OFFSETS)


def with_ledger() -> Stage:
    """Two committed records at 0 and 1, an aborted one at 3, a committed one at 5."""
    stage = Stage(OffsetsMatchCopies())
    for name in (OFFSETS, COPY):
        stage.add(name)
    for value, commit in ((b"a", True), (b"x", False), (b"b", True)):
        values = (b"a", b"b") if value == b"a" else (b"c",) if value == b"b" else (value,)
        stage.write(stage.log.data(OTHER, 0, *values))
        stage.write(stage.log.marker(OTHER, 0, commit=commit))
    return stage


def test_txn_ti10_offsets_move_over_what_was_copied() -> None:
    stage = with_ledger()
    copied(stage, b"a>c-1", b"b>c-1", offset=2)
    stage.marker(2, name=COPY)
    copied(stage, b"c>c-2", offset=6, epoch=2)


@pytest.mark.parametrize(
    ("copies", "offset"),
    [
        ((b"a>c-1",), 2),
        ((b"a>c-1", b"b>c-1"), 1),
        ((b"a>c-1", b"a>c-1", b"b>c-1"), 2),
        ((b"a>c-1", b"b>c-1", b"x>c-1"), 4),
        ((b"a>c-1", b"b>c-1"), 6),
    ],
)
def test_txn_ti10_offsets_that_say_more_or_less_than_the_copies_are_noticed(
    copies: tuple[bytes, ...], offset: int
) -> None:
    stage = with_ledger()
    with pytest.raises(Violation, match="moves ledger-0 from 0"):
        copied(stage, *copies, offset=offset)


def test_txn_ti10_a_marker_that_comes_again_and_an_abort_move_nothing() -> None:
    stage = with_ledger()
    copied(stage, b"a>c-1", b"b>c-1", offset=2)
    stage.marker(2, name=OFFSETS)
    stage.data(2, b"c>c-2", name=COPY)
    stage.offsets(2, 2)
    stage.marker(3, commit=False, name=OFFSETS)
