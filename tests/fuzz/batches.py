"""Record batches, sound and broken: what a producer with a bug, or a grudge, puts into a Produce.

Always true: the same seed gives the same batches. A bomb is small on the wire and large when it is opened.
"""

from __future__ import annotations

import random
import struct
from functools import cache
from typing import Any

from strandline.records import header as layout
from strandline.records.batch import BatchBuilder, join
from strandline.records.compression import CompressionType, compress
from strandline.records.header import read_header

BOMB_BYTES = 16 * 1024 * 1024
FIELDS = {
    "base_offset": (">q", layout.BASE_OFFSET_AT),
    "length": (">i", layout.LENGTH_AT),
    "magic": (">b", layout.MAGIC_AT),
    "attributes": (">h", layout.ATTRIBUTES_AT),
    "last_offset_delta": (">i", layout.LAST_OFFSET_DELTA_AT),
    "base_timestamp": (">q", layout.BASE_TIMESTAMP_AT),
    "max_timestamp": (">q", layout.MAX_TIMESTAMP_AT),
    "producer_id": (">q", layout.PRODUCER_ID_AT),
    "producer_epoch": (">h", layout.PRODUCER_EPOCH_AT),
    "base_sequence": (">i", layout.BASE_SEQUENCE_AT),
    "count": (">i", layout.COUNT_AT),
}


@cache
def bomb(codec: CompressionType) -> bytes:
    """A sealed batch whose records are a flood of zeros."""
    builder = BatchBuilder()
    builder.append(b"k", b"v", timestamp=1)
    return bytes(join(read_header(builder.build(codec=codec)), compress(codec, bytes(BOMB_BYTES), None)))


class Batches:
    def __init__(self, chance: random.Random, now_ms: int) -> None:
        self._chance = chance
        self._now_ms = now_ms

    def sound(self) -> bytearray:
        chance = self._chance
        builder = BatchBuilder()
        for _ in range(chance.choice((1, 1, 2, 10))):
            key = None if chance.random() < 0.1 else chance.randbytes(chance.choice((0, 1, 20)))
            value = None if chance.random() < 0.1 else chance.randbytes(chance.choice((0, 1, 300)))
            headers = [("h", b"v")] if chance.random() < 0.2 else ()
            builder.append(key, value, headers, self._now_ms + chance.randrange(-1000, 1000))
        fields: dict[str, Any] = {}
        if chance.random() < 0.3:
            fields = {
                "producer_id": chance.randrange(5),
                "producer_epoch": 0,
                "base_sequence": chance.choice((0, 0, 1, 5)),
            }
        return builder.build(codec=chance.choice(list(CompressionType)), **fields)

    def draw(self) -> bytes:
        """Half of them sound."""
        return bytes(self.sound()) if self._chance.random() < 0.5 else self.broken()

    def broken(self) -> bytes:
        chance = self._chance
        batch = self.sound()
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            batch = self._break(batch)
        if chance.random() < 0.7 and len(batch) >= layout.RECORDS_AT:
            # With its checksum put right the batch gets past the first gate.
            if chance.random() < 0.8:
                struct.pack_into(">i", batch, layout.LENGTH_AT, len(batch) - layout.LOG_OVERHEAD)
            layout.seal(batch)
        return bytes(batch)

    def _break(self, batch: bytearray) -> bytearray:
        chance = self._chance
        if len(batch) < layout.RECORDS_AT:
            return bytearray(chance.randbytes(chance.randrange(200)))
        match chance.randrange(10):
            case 0 | 1 | 2:
                letter, at = chance.choice(list(FIELDS.values()))
                bits = 8 * struct.calcsize(letter) - 1
                odd = (0, 1, -1, 2, 5, 100, (1 << bits) - 1, -(1 << bits), chance.randrange(1 << bits))
                struct.pack_into(letter, batch, at, max(min(chance.choice(odd), (1 << bits) - 1), -(1 << bits)))
            case 3:
                batch[chance.randrange(len(batch))] ^= 1 << chance.randrange(8)
            case 4:
                at = min(layout.RECORDS_AT + chance.randrange(20), len(batch) - 1)
                batch[at] = chance.choice((0, 1, 127, 128, 255))
            case 5:
                del batch[chance.randrange(len(batch)) :]
            case 6:
                batch += chance.choice((bytes(batch), chance.randbytes(chance.randrange(1, 100)), b"\0"))
            case 7:
                # Garbage under the name of a codec, or a codec that nobody knows.
                batch[layout.ATTRIBUTES_AT + 1] = batch[layout.ATTRIBUTES_AT + 1] & 0xF8 | chance.randrange(8)
                batch[layout.RECORDS_AT :] = chance.randbytes(chance.randrange(1, 300))
            case 8:
                batch[layout.MAGIC_AT] = chance.choice((0, 1, 3, 255))
            case 9:
                if chance.random() < 0.05:
                    return bytearray(bomb(chance.choice([codec for codec in CompressionType if codec])))
        return batch
