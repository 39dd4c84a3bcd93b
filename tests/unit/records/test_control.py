from __future__ import annotations

import pytest
from aiokafka.record.control_record import ABORT_MARKER, COMMIT_MARKER, ControlRecord

from strandline.records.control import (
    ControlRecordType,
    control_key,
    end_txn_marker,
    read_control_type,
    read_end_txn_marker,
)
from strandline.records.errors import InvalidRecord

KNOWN = [kind for kind in ControlRecordType if kind is not ControlRecordType.UNKNOWN]


def test_keys() -> None:
    assert [control_key(kind).hex() for kind in KNOWN] == [f"0000000{number}" for number in range(7)]
    assert [read_control_type(control_key(kind)) for kind in KNOWN] == KNOWN
    assert ControlRecord.parse(control_key(ControlRecordType.ABORT)) == ABORT_MARKER
    assert ControlRecord.parse(control_key(ControlRecordType.COMMIT)) == COMMIT_MARKER


def test_what_is_newer_than_we_are() -> None:
    assert read_control_type(bytes.fromhex("00000063")) is ControlRecordType.UNKNOWN
    assert read_control_type(bytes.fromhex("00050001ffff")) is ControlRecordType.COMMIT
    assert read_end_txn_marker(bytes.fromhex("000500000007aa")) == 7


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00"])
def test_a_key_that_names_no_type(key: bytes | None) -> None:
    with pytest.raises(InvalidRecord):
        read_control_type(key)


def test_end_txn_marker() -> None:
    assert end_txn_marker(7).hex() == "000000000007"
    assert read_end_txn_marker(end_txn_marker(-1)) == -1


@pytest.mark.parametrize("value", [None, b"", b"\x00\x00\x00\x00\x00", b"\xff\xff\x00\x00\x00\x00"])
def test_a_value_that_is_no_marker(value: bytes | None) -> None:
    with pytest.raises(InvalidRecord):
        read_end_txn_marker(value)
