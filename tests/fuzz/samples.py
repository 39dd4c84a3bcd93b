"""Requests that a client could have sent: every field filled, with values that mean something where the name tells which.

Always true: the same seed gives the same requests. Values lean towards what exists, because a request that is refused at its
first field tests nothing beyond it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from strandline.ids import Uuid
from strandline.wire import messages
from strandline.wire.headers import request_header
from strandline.wire.structs import Field, Struct

from .batches import Batches

ODD_NAMES = (
    "",
    ".",
    "..",
    "a/b",
    "\0",
    "é",
    "x" * 249,
    "x" * 250,
    "a.b",
    "a_b",
    "__consumer_offsets",
    "fresh",
    "1",
    "*",
)
CONFIG_NAMES = (
    "retention.ms",
    "cleanup.policy",
    "max.message.bytes",
    "compression.type",
    "segment.bytes",
    "no.such.key",
    "",
)
GROUPS = ("g", "h", "plain", "")
MEMBERS = ("", "", "m", "n")
PROTOCOLS = ("consumer", "consumer", "range", "uniform")
CONFIG_VALUES = ("1000", "-1", "delete", "compact", "gzip", "1048588", "x", "", "9" * 30)
NUMBERS = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "int64": 63}
SMALL = (0, 0, 1, 1, 2, 3, -1, -1, -2)
LIKELY: Mapping[str, Sequence[int]] = {
    "acks": (-1, -1, 1, 0, 5),
    "num_partitions": (1, 1, 2, -1, 0, -2, 9),
    "count": (1, 2, 3, 5, 0, -1),
    "replication_factor": (1, 1, -1, 0, 2),
    "timeout_ms": (0, 10, 1000, -1),
    "max_wait_ms": (0, 0, 1, 5, -1),
    "min_bytes": (0, 1, 1, 1000),
    "max_bytes": (1 << 20, 100, 0, -1),
    "partition_max_bytes": (1 << 20, 100, 0, -1),
    "timestamp": (-1, -2, -3, -4, -5, 0, 1_700_000_000_000, 2**63 - 1),
    "resource_type": (2, 2, 4, 8, 16, 0, 99),
    "config_operation": (0, 1, 2, 3, 9),
    "key_type": (0, 1, 2),
    "isolation_level": (0, 1, 2),
    "replica_id": (-1, -1, -2, 1),
    "session_timeout_ms": (100, 100, 1000, 0, -1),
    "rebalance_timeout_ms": (10, 100, 0, -1),
    "generation_id": (1, 1, 2, 0, -1),
    "member_epoch": (0, 0, 1, 2, -1, -2, -3),
}


class Samples:
    """Requests for one node: `topics` are the names and ids that exist there."""

    def __init__(self, chance: random.Random, topics: Mapping[str, Uuid], batches: Batches) -> None:
        self.topics = topics
        self._chance = chance
        self._batches = batches

    def payload(self, api_key: int, version: int) -> bytes:
        """Header and body, without the size in front."""
        header = request_header(
            api_key, version, self._chance.randrange(1 << 31), self._chance.choice(("fuzz", None, ""))
        )
        return header + self.body(api_key, version)

    def body(self, api_key: int, version: int) -> bytes:
        struct = messages.request_family(api_key).struct(version)
        return messages.encode_request(api_key, version, self._struct(struct))

    def _struct(self, struct: Struct) -> Any:
        assert struct.cls is not None
        return struct.cls(**{field.name: self._value(field) for field in struct.fields})

    def _value(self, field: Field) -> Any:
        if field.nullable and self._chance.random() < 0.2:
            return None
        if field.array:
            return [self._single(field) for _ in range(self._chance.choice((0, 1, 1, 1, 2, 4)))]
        return self._single(field)

    def _single(self, field: Field) -> Any:
        chance = self._chance
        if field.struct is not None:
            return self._struct(field.struct)
        match field.type:
            case "bool":
                return chance.random() < 0.5
            case "float64":
                return chance.choice((0.0, -1.0, 1e300, chance.random()))
            case "uuid":
                return chance.choice((*self.topics.values(), Uuid(bytes(16)), Uuid(chance.randbytes(16))))
            case "string":
                return self._text(field.name)
            case "records":
                return self._batches.draw()
            case "bytes":
                return chance.randbytes(chance.choice((0, 1, 200)))
        return self._number(field)

    def _text(self, name: str) -> str:
        chance = self._chance
        if "config" in name or (name == "name" and chance.random() < 0.3):
            return chance.choice(CONFIG_NAMES)
        if name == "value":
            return chance.choice(CONFIG_VALUES)
        if name in ("group_id", "groups", "group_ids", "groups_names"):
            return chance.choice(GROUPS)
        if name in ("member_id", "instance_id", "group_instance_id"):
            return chance.choice(MEMBERS)
        if name in ("protocol_type", "protocol_name", "server_assignor"):
            return chance.choice(PROTOCOLS)
        if name == "subscribed_topic_regex":
            return chance.choice(("p.*", "t|plain", "(", "", "a{1000}{1000}"))
        if name == "transactional_id" and chance.random() < 0.7:
            return ""
        return chance.choice(tuple(self.topics)) if chance.random() < 0.8 else chance.choice(ODD_NAMES)

    def _number(self, field: Field) -> int:
        chance, bits = self._chance, NUMBERS[field.type]
        low = 0 if field.type.startswith("u") else -(1 << bits)
        drawn = chance.random()
        if drawn < 0.9:
            return max(low, chance.choice(LIKELY.get(field.name, SMALL)))
        if drawn < 0.95:
            return chance.choice((low, (1 << bits) - 1))
        return chance.randint(low, (1 << bits) - 1)
