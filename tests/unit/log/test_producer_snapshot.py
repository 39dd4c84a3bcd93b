"""Snapshots of producer state: Kafka's bytes, and nothing that is not sound."""

from __future__ import annotations

import pytest

from strandline.log import producer_snapshot
from strandline.log.errors import CorruptLog
from strandline.log.producers import BatchMetadata, Producers

from .conftest import LogDir

KAFKA_BYTES = bytes.fromhex(
    "0001"  # version
    "d55c8635"  # CRC-32C of all that follows
    "00000002"  # two producers
    "000000000000002a" "0003" "0000000e" "0000000000000063" "00000004" "000000000000ea60" "00000005"
    "000000000000005a"
    "0000000000000007" "0001" "ffffffff" "ffffffffffffffff" "00000000" "0000000000000bb8" "00000009"
    "ffffffffffffffff"
)  # fmt: skip
"""ProducerSnapshot v1, as kafka-dump-log 4.3.1 reads it: 42 is in a transaction since offset 90; of 7 only a marker is left."""


def two_producers() -> Producers:
    producers = Producers()
    producers.add_batch(42, 3, 9, 90, 94, 50_000, True)
    producers.add_batch(42, 3, 14, 95, 99, 60_000, True)
    producers.by_id[42].coordinator_epoch = 5
    producers.end_txn(7, 1, 9, 80, 3000, False)
    return producers


def test_txn_p30_the_bytes_are_kafkas() -> None:
    assert producer_snapshot.encode(two_producers()) == KAFKA_BYTES


def test_txn_p30_a_snapshot_brings_back_what_a_restart_needs() -> None:
    restored = Producers()
    restored.adopt(producer_snapshot.decode(KAFKA_BYTES, "s"))
    first, second = restored.by_id[42], restored.by_id[7]
    assert (first.epoch, list(first.batches)) == (3, [BatchMetadata(14, 99, 4, 60_000)])
    assert (first.coordinator_epoch, first.current_txn_first_offset, first.last_timestamp) == (5, 90, 60_000)
    assert (second.epoch, list(second.batches), second.coordinator_epoch) == (1, [], 9)
    assert restored.first_unstable_offset(1000) == 90
    assert producer_snapshot.encode(restored) == KAFKA_BYTES


@pytest.mark.parametrize("position", range(len(KAFKA_BYTES)))
def test_txn_p30_a_flipped_bit_anywhere_is_noticed(position: int) -> None:
    rotten = bytearray(KAFKA_BYTES)
    rotten[position] ^= 0x10
    with pytest.raises(CorruptLog):
        producer_snapshot.decode(bytes(rotten), "s")


@pytest.mark.parametrize("size", range(0, len(KAFKA_BYTES), 5))
def test_a_short_file_is_noticed(size: int) -> None:
    with pytest.raises(CorruptLog):
        producer_snapshot.decode(KAFKA_BYTES[:size], "s")


def test_the_newest_sound_one_within_the_log_counts(directory: LogDir) -> None:
    directory.disk.mkdir(directory.path)
    empty = producer_snapshot.encode(Producers())
    for offset, data in ((10, KAFKA_BYTES), (20, KAFKA_BYTES[:-1]), (30, b""), (40, empty)):
        producer_snapshot.write(directory.disk, directory.path, offset, data)
    found = Producers()
    assert producer_snapshot.load_latest(directory.disk, directory.path, 10, 39, found) == 10
    assert sorted(found.by_id) == [7, 42]
    assert producer_snapshot.offsets_in(directory.disk, directory.path) == [10, 40]
    assert producer_snapshot.load_latest(directory.disk, directory.path, 0, 9, Producers()) is None
    assert producer_snapshot.load_latest(directory.disk, directory.path, 11, 39, Producers()) is None
