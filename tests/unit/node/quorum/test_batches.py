"""Batches of the metadata log, opened."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.metadata import framing
from strandline.metadata.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from strandline.node.quorum import batches
from strandline.raft.control_records import kraft_version_record, leader_change, voters_record
from strandline.raft.messages import Address, ReplicaKey
from strandline.raft.voters import VoterNode, VoterSet
from strandline.records.batch import BatchBuilder
from strandline.records.errors import CorruptRecord

from .stage import topic

A, B, C = topic("a"), topic("b"), topic("c")
BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()
VOTERS = VoterSet([VoterNode(ReplicaKey(1), {"C": Address("n1", 9093)}, range(2))])


@pytest.mark.parametrize(
    ("records", "kept", "is_open"),
    [
        ([], [], False),
        ([A, B], [A, B], False),
        ([A, BEGIN, B, END, C], [A, B, C], False),
        ([A, BEGIN, B, ABORT, C], [A, C], False),
        ([A, BEGIN, B, C], [A], True),
        ([BEGIN, A, END, BEGIN, B], [A], True),
        ([BEGIN, A, ABORT, BEGIN, B, END], [B], False),
    ],
)
def test_only_whole_transactions_count(records, kept, is_open):
    assert batches.whole_transactions(records) == kept
    assert batches.is_within_transaction(records, False) is is_open


@pytest.mark.parametrize("before", [False, True])
def test_a_transaction_goes_on_until_it_ends(before):
    assert batches.is_within_transaction([A, B], before) is before
    assert batches.is_within_transaction([A, END], before) is False


def built(pairs, base_offset, *, control=False):
    builder = BatchBuilder()
    for key, value in pairs:
        builder.append(key, value, timestamp=1000 + base_offset)
    return bytes(builder.build(base_offset=base_offset, leader_epoch=3, control=control))


def values(*records):
    return [(None, framing.encode(record, 0)) for record in records]


def test_records_and_what_control_records_say():
    control = [leader_change(1, [1], [1]), kraft_version_record(1), voters_record(VOTERS)]
    data = built(values(A, B), 5) + built(control, 7, control=True) + built(values(C), 10)
    first, second, third = batches.read(data + data[:30])
    assert (first.end_offset, first.epoch, first.timestamp_ms, first.records) == (7, 3, 1005, [A, B])
    assert (second.end_offset, second.records, second.voters, second.kraft_version) == (10, [], VOTERS, 1)
    assert (third.end_offset, third.records, third.voters, third.kraft_version) == (11, [C], None, None)
    assert first.size_bytes + second.size_bytes + third.size_bytes == len(data)


def test_a_flipped_bit_is_found():
    data = bytearray(built(values(A), 0))
    data[-1] ^= 1
    with pytest.raises(CorruptRecord):
        batches.read(bytes(data))
