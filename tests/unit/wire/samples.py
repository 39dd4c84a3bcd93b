"""Messages made up for tests: any struct in any version, filled from a seed."""

from __future__ import annotations

import random
from typing import Any

from strandline.ids import Uuid
from strandline.wire.structs import Field, Struct

_NUMBERS = {"int8": 100, "int16": 100, "uint16": 60_000, "int32": 1 << 30, "uint32": 1 << 31, "int64": 1 << 40}
"""Largest numbers: kio reads int16 as error codes and int64 as dates, so neither may be any number."""


def sample(struct: Struct, chance: random.Random) -> Any:
    assert struct.cls is not None
    return struct.cls(**{field.name: _value(field, chance) for field in struct.fields})


def _value(field: Field, chance: random.Random) -> Any:
    # kio writes no null in a tagged field.
    if field.nullable and field.tag is None and chance.random() < 0.3:
        return None
    if field.array:
        return [_single(field, chance) for _ in range(chance.choice((0, 1, 3)))]
    return _single(field, chance)


def _single(field: Field, chance: random.Random) -> Any:
    if field.struct is not None:
        return sample(field.struct, chance)
    match field.type:
        case "bool":
            return chance.random() < 0.5
        case "float64":
            return chance.random()
        case "uuid":
            return Uuid(chance.randbytes(16))
        case "string":
            return "".join(chance.choices("aé漢𝄞", k=chance.choice((0, 1, 5, 130))))
        case "bytes" | "records":
            return chance.randbytes(chance.choice((0, 1, 200)))
    return chance.randint(0, _NUMBERS[field.type])
