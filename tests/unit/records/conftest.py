"""Batches that the record tests share."""

from __future__ import annotations

import warnings

import pytest

from strandline.records.record import Record

# kafka-python, one of the judges, warns about itself when it is first imported, and warnings are errors here.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401

NOW = 1_700_000_000_000


@pytest.fixture
def varied() -> list[Record]:
    """Records with all that the format allows: nulls, empties, a megabyte, odd headers, no timestamp."""
    return [
        Record(0, NOW, b"key", b"value", ()),
        Record(1, NOW + 1, None, b"no key", ()),
        Record(2, NOW - 5, b"tombstone", None, ()),
        Record(3, NOW + 100_000, None, None, ()),
        Record(4, NOW, b"", b"", (("trace", b"1"), ("trace", b"2"), ("nothing", None), ("", b""), ("키", b"\xff"))),
        Record(5, -1, b"no timestamp", b"x" * 100, ()),
        Record(6, NOW + 3, b"large", bytes(range(256)) * 4096, ()),
    ]
