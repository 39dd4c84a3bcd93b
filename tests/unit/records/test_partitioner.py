from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as judge

from strandline.records.partitioner import murmur2, partition_for


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_that_java_is_known_to_give(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed % 2**32


@given(st.binary(max_size=40), st.integers(1, 1000))
def test_another_client_agrees(key: bytes, partitions_count: int) -> None:
    assert murmur2(key) == judge(key) % 2**32
    assert partition_for(key, partitions_count) == (judge(key) & 0x7FFFFFFF) % partitions_count
