"""A log read back is the shard that its records make, one after the other."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from strandline.coordinator.record import CoordinatorRecord
from strandline.errors import KafkaError
from strandline.groups import framing
from strandline.groups.records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from strandline.groups.shard import GroupShard
from strandline.node.coordinator.loading import load
from strandline.records.batch import BatchBuilder
from strandline.records.compression import CompressionType
from strandline.records.control import ControlRecordType, control_key, end_txn_marker
from strandline.records.header import read_header
from strandline.records.rewrite import retain

from .stage import Coordination, in_simulation


def drawn(chance: random.Random, number: int) -> CoordinatorRecord:
    group = chance.choice("gh")
    if chance.random() < 0.3:
        value = GroupMetadataValue(protocol_type="consumer", generation=number, protocol=None, leader=None, members=())
        return CoordinatorRecord(GroupMetadataKey(group=group), chance.choice((None, value)))
    key = OffsetCommitKey(group=group, topic="t", partition=chance.randrange(2))
    offset = OffsetCommitValue(offset=number, metadata="", commit_timestamp=number)
    return CoordinatorRecord(key, chance.choice((None, offset, offset)))


def append_some(stage: Coordination, shard: GroupShard, chance: random.Random) -> None:
    """Batches of any kind into the log, and each record by itself into the shard."""
    for number in range(60):
        builder = BatchBuilder()
        kind = chance.choice(("plain", "plain", "plain", "transactional", "marker"))
        producer_id = chance.randrange(2)
        fields: dict[str, Any] = {}
        if kind == "marker":
            commit = chance.random() < 0.7
            builder.append(
                control_key(ControlRecordType.COMMIT if commit else ControlRecordType.ABORT),
                end_txn_marker(0),
                timestamp=number,
            )
            shard.replay_marker(producer_id, commit=commit)
            fields = {"producer_id": producer_id, "producer_epoch": 0, "transactional": True, "control": True}
        elif kind == "transactional":
            key = OffsetCommitKey(group=chance.choice("gh"), topic="t", partition=0)
            value = OffsetCommitValue(offset=1000 + number, metadata="", commit_timestamp=number)
            builder.append(*framing.encode(CoordinatorRecord(key, value)), timestamp=number)
            shard.replay(CoordinatorRecord(key, value), number, producer_id)
            fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": number, "transactional": True}
        else:
            for _ in range(chance.randrange(1, 5)):
                record = drawn(chance, number)
                builder.append(*framing.encode(record), timestamp=number)
                shard.replay(record, number)
            fields = {"codec": chance.choice((CompressionType.NONE, CompressionType.NONE, CompressionType.LZ4))}
        stage.partition.log.append_own(builder.build(**fields), 0, number)


def told(shard: GroupShard) -> Any:
    groups = {
        group_id: (group.group_type, getattr(group, "generation_id", None)) for group_id, group in shard.groups.items()
    }
    offsets = {group_id: {t: dict(p) for t, p in shard.offsets.of_group(group_id).items()} for group_id in "gh"}
    return groups, offsets, [shard.offsets.is_open(group_id, "t", 0) for group_id in "gh"]


@pytest.mark.parametrize("seed", range(30))
def test_of_several_records_with_one_key_the_last_one_counts(seed: int) -> None:
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()
        group_dependencies = broker.groups._group_dependencies
        one_by_one, loaded = GroupShard(0, group_dependencies), GroupShard(0, group_dependencies)
        append_some(stage, one_by_one, random.Random(seed))
        await load(stage.partition, loaded, framing, disk)
        assert told(loaded) == told(one_by_one)

    in_simulation(story)


def test_a_batch_that_rotted_is_not_believed() -> None:
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()
        await stage.commit(5)
        batch = bytearray(stage.partition.log.read(0, 1 << 20, 1, min_one=True))
        batch[-1] ^= 1
        stage.partition.log.read = lambda *_, **__: bytes(batch)  # type: ignore[method-assign]
        with pytest.raises(KafkaError, match="CRC"):
            await load(stage.partition, GroupShard(0, broker.groups._group_dependencies), framing, disk)

    in_simulation(story)


def test_txn_t7_what_is_of_a_version_that_we_do_not_know_is_skipped_with_a_warning() -> None:
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk).loaded()
        key, _ = framing.encode(CoordinatorRecord(OffsetCommitKey(group="g", topic="t", partition=0), None))
        for transactional in (False, True):
            builder = BatchBuilder()
            builder.append(b"\x00\x63" + key[2:], b"\x00\x00", timestamp=1)
            fields: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
            stage.partition.log.append_own(builder.build(**(fields if transactional else {})), 0, 1)
        shard = GroupShard(0, broker.groups._group_dependencies)
        assert await load(stage.partition, shard, framing, disk) == (2, 2)
        broker.change("__consumer_offsets", leader=1)
        await stage.loaded()
        [line] = [line for line in broker.lines if "were skipped" in line]
        assert '"records":2' in line.replace(" ", "")

    in_simulation(story)


def test_txn_tf1_batches_of_which_compaction_left_nothing_are_passed() -> None:
    """They are one offset or many, at the start, in between and at the end, and above the high watermark."""

    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, 1, 2, 3).loaded()
        for number, size in enumerate((1, 3, 0, 1, 0, 2)):
            builder = BatchBuilder()
            for _ in range(max(size, 1)):
                key = OffsetCommitKey(group="g", topic="t", partition=0)
                value = OffsetCommitValue(offset=number, metadata="", commit_timestamp=number)
                builder.append(*framing.encode(CoordinatorRecord(key, value)), timestamp=number)
            batch = builder.build()
            if size != 0:
                batch = retain(read_header(batch), [])
            stage.partition.log.append_own(batch, 0, number)
        assert stage.batches == [0, 0, 1, 0, 1, 0]
        assert (stage.partition.high_watermark, stage.partition.log.log_end_offset) == (0, 9)
        loaded = GroupShard(0, broker.groups._group_dependencies)
        async with asyncio.timeout(10):
            assert await load(stage.partition, loaded, framing, disk) == (2, 0)
        found = loaded.offsets.get("g", "t", 0)
        assert found is not None
        assert found.offset == 4

    in_simulation(story)
