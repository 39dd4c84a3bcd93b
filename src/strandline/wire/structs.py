"""What a Kafka message looks like in one version: structs of fields.

Always true: a Struct describes exactly the bytes of its version, in order; how those bytes are read and written is the
codec's business (`decoder.py`, `encoder.py`), and where a Struct comes from is not (`schemas.py`, `metadata/records.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""Kafka's types of a fixed size, and their letter in `struct`'s formats."""

FIXED_SIZE = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}

VARIABLE = frozenset({"string", "bytes", "records"})


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `default` is a plain value; () stands for an empty array, and for a struct whose fields are all defaults."""

    name: str
    type: str
    """A name of FIXED or VARIABLE, or "struct"."""
    default: object
    array: bool = False
    nullable: bool = False
    tag: int | None = None
    struct: Struct | None = None
    legacy: bool = False
    """Keeps its old form in flexible versions: only the request header's client_id does."""


@dataclass(frozen=True, slots=True)
class Struct:
    """One struct in one version. `cls` makes its instances."""

    name: str
    flexible: bool
    fields: tuple[Field, ...]
    cls: type | None = None

    @property
    def untagged(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.tag is None)

    @property
    def tagged(self) -> tuple[Field, ...]:
        """In ascending order of their tags, as they must be written."""
        return tuple(
            sorted((field for field in self.fields if field.tag is not None), key=lambda field: field.tag or 0)
        )

    @property
    def size_min(self) -> int:
        """The fewest bytes that one of these can take."""
        return sum(field_size_min(field, self.flexible) for field in self.untagged) + (1 if self.flexible else 0)

    @property
    def objects(self) -> int:
        """What reading one of these costs in objects, arrays' elements aside: itself and its fields, nested ones included."""
        nested = (field.struct.objects for field in self.fields if field.struct is not None and not field.array)
        return 1 + len(self.fields) + sum(nested)


def field_size_min(field: Field, flexible: bool) -> int:
    if field.array:
        return 1 if flexible else 4
    if field.type in FIXED_SIZE:
        return FIXED_SIZE[field.type]
    if field.struct is not None:
        return 1 if field.nullable else field.struct.size_min
    if flexible and not field.legacy:
        return 1
    return 2 if field.type == "string" else 4


def element_size_min(field: Field, flexible: bool) -> int:
    """The fewest bytes that one element of this array can take."""
    return field_size_min(replace(field, array=False, nullable=False), flexible)
