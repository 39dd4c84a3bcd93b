"""Reading a partition of a coordinator's topic back into a shard.

The topic is compacted, so of several records with one key only the last one counts: while no transaction is open only
those are replayed, in their order. That makes the load of a busy coordinator's log a matter of reading it.

Always true: the shard is what it would be if every record from the log start to the log end had been replayed, whatever
the high watermark is (TXN-TF1). Nothing is served meanwhile, markers of transactions neither, so the end does not move.
The event loop is given back every few records, and what is not cached is read beside it.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from strandline.coordinator.shard import CoordinatorShard, Framing
from strandline.log.errors import NotCached
from strandline.node.coordinator.newest_records import NewestRecords, NotedBatches
from strandline.node.tasks import to_the_end
from strandline.ports import Disk
from strandline.records.batch import open_records, payload_of
from strandline.records.compression import DECOMPRESSED_BYTES_MAX
from strandline.records.control import ControlRecordType, read_control_type
from strandline.records.errors import CorruptRecord
from strandline.records.header import BatchHeader, crc_of, iterate
from strandline.records.record import Record
from strandline.replica.partition import Partition

READ_BYTES = 256 * 1024
READ_PER_TURN_MAX, REPLAYED_PER_TURN_MAX = 1000, 100
"""Records, before others get their turn: a millisecond or two."""


class LoadedRecords(NamedTuple):
    records: int
    skipped: int
    """Of a type or version that we do not know."""


async def load(partition: Partition, shard: CoordinatorShard, framing: Framing, disk: Disk) -> LoadedRecords:
    """What was read.
    KafkaError, MalformedRecord or OSError if the log can't be read or understood.
    """
    return await _Load(partition, shard, framing, disk).run()


class _Load:
    def __init__(self, partition: Partition, shard: CoordinatorShard, framing: Framing, disk: Disk) -> None:
        self._partition = partition
        self._shard = shard
        self._framing = framing
        self._disk = disk
        self._newest = NewestRecords()
        """Of what was not replayed yet."""
        self._skipped = 0
        self._open: set[int] = set()
        """Producers whose transactions have no marker yet:
        a tombstone takes their offsets too, whatever is committed after it.
        """

    async def run(self) -> LoadedRecords:
        log = self._partition.log
        offset, count = log.log_start_offset, 0
        while offset < log.log_end_offset:
            data = await self._read(offset)
            if not data:
                break  # compaction left nothing between here and the log end
            position = 0
            while (header := next((header for _, header in iterate(data, position)), None)) is not None:
                noted = None if self._open else self._newest.note_plain(data, position, READ_PER_TURN_MAX)
                if noted is None or not noted.records:
                    end = position + header.size_bytes
                    await self._note(header, data[position:end])
                    noted = NotedBatches(end, header.records_count, header.next_offset)
                position, records, offset = noted
                count += records
                await asyncio.sleep(0)
        await self._replay_newest()
        return LoadedRecords(count, self._skipped)

    async def _note(self, header: BatchHeader, batch: bytes) -> None:
        """One that is compressed, empty, or part of a transaction."""
        if header.crc != crc_of(batch):
            raise CorruptRecord(f"The batch at offset {header.base_offset} does not carry its CRC")
        if self._open or header.is_transactional or header.is_control:
            await self._replay_newest()
            for record in open_records(header, batch, DECOMPRESSED_BYTES_MAX):
                self._replay(header, record)
        elif header.records_count:
            payload = bytes(payload_of(header, batch, DECOMPRESSED_BYTES_MAX))
            self._newest.note(payload, 0, len(payload), header.records_count, header.base_timestamp)

    async def _read(self, offset: int) -> bytes:
        log = self._partition.log
        while True:
            try:
                return bytes(log.read(offset, READ_BYTES, log.log_end_offset, min_one=True))
            except NotCached as cold:
                with log.held():
                    await to_the_end(self._disk.offload(cold.warm, log.directory))

    async def _replay_newest(self) -> None:
        for count, (key, value, timestamp) in enumerate(self._newest.take(), 1):
            found = self._framing.decode(key, value)
            if found is None:
                self._skipped += 1
            else:
                self._shard.replay(found, timestamp)
            if not count % REPLAYED_PER_TURN_MAX:
                await asyncio.sleep(0)

    def _replay(self, header: BatchHeader, record: Record) -> None:
        if header.is_control:
            kind = read_control_type(record.key)
            if kind in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
                self._open.discard(header.producer_id)
                self._shard.replay_marker(header.producer_id, commit=kind is ControlRecordType.COMMIT)
            return
        producer_id = -1
        if header.is_transactional:
            producer_id = header.producer_id
            self._open.add(producer_id)
        found = self._framing.decode(record.key, record.value)
        if found is None:
            self._skipped += 1
        else:
            self._shard.replay(found, record.timestamp, producer_id)
