"""What every client must be able to do, told once; the test file of each client says with which client.

Always true: what is read is compared with what was sent field by field, and with the offsets that were acknowledged.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.system.clients import Broker, Client, Rec, Seen

NOW_MS = int(time.time() * 1000) - 3_600_000
"""An hour ago: old enough to differ from the broker's clock, too young for retention."""
PARTITIONS = 3
CODEC_IDS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}

_INCOMPRESSIBLE = random.Random(7).randbytes(1_000_000)


def varied() -> list[Rec]:
    """Keys, values, headers and timestamps of every kind, over several partitions, up to a value of a megabyte."""
    records = [
        Rec(0, b"key", b"value", NOW_MS),
        Rec(0, None, b"without key", NOW_MS + 1),
        Rec(1, b"tombstone", None, NOW_MS + 2),
        Rec(1, b"", b"", NOW_MS - 5),
        Rec(2, b"headers", b"x", NOW_MS + 3, (("trace", b"1"), ("trace", b"2"), ("empty", b""), ("키", b"\xff\x00"))),
        Rec(0, b"\x00\xff" * 300, b"ab" * 5000, NOW_MS + 4),
        Rec(2, None, _INCOMPRESSIBLE, NOW_MS + 100_000),
        Rec(2, b"after", b"the large one", NOW_MS + 7),
    ]
    return records + [Rec(i % PARTITIONS, b"%d" % i, b"the same again " * 20, NOW_MS + i) for i in range(300)]


def expected(records: Sequence[Rec], offsets: Sequence[int]) -> dict[int, list[Seen]]:
    """What a reader of the whole topic must see."""
    result: dict[int, list[Seen]] = {}
    for offset, record in sorted(zip(offsets, records, strict=True), key=lambda pair: pair[0]):
        result.setdefault(record.partition, []).append(Seen(offset, record))
    return result


async def round_trip(
    writer: Client, reader: Client, broker: Broker, topic: str, codec: str = "none", *, idempotent: bool = False
) -> None:
    """Everything comes back as it was sent, at the offsets acknowledged, which leave no gap and keep the order of sending."""
    records = varied()
    offsets = await writer.write(broker, topic, records, codec, idempotent=idempotent)
    for partition in range(PARTITIONS):
        own = [offset for offset, record in zip(offsets, records, strict=True) if record.partition == partition]
        assert own == list(range(len(own)))
    assert await reader.read(broker, topic, PARTITIONS) == expected(records, offsets)
    assert broker.server is not None
    data = broker.server.data
    batches = [batch for partition in range(PARTITIONS) for batch in stored_batches(data, topic, partition)]
    assert codec == "none" or CODEC_IDS[codec] in {batch.codec for batch in batches}, "nothing was stored compressed"
    assert all((batch.producer_id >= 0) == idempotent for batch in batches)


class StoredBatch:
    """The header fields of a batch as it lies in a segment."""

    def __init__(self, header: bytes) -> None:
        self.base_offset, self.length, self.leader_epoch, self.magic, self.crc, attributes = struct.unpack_from(
            ">qiibIh", header
        )
        self.producer_id: int = struct.unpack_from(">q", header, 43)[0]
        self.codec: int = attributes & 7


def stored_batches(data: Path, topic: str, partition: int) -> Iterator[StoredBatch]:
    """The batches in the segments on disk."""
    for segment in sorted((data / f"{topic}-{partition}").glob("*.log")):
        stored = segment.read_bytes()
        position = 0
        while position < len(stored):
            batch = StoredBatch(stored[position : position + 61])
            yield batch
            position += 12 + batch.length
