"""Where groups belong, as Java finds it."""

from __future__ import annotations

import pytest

from strandline.api.groups.placement import partition_of


@pytest.mark.parametrize(
    ("group_id", "java_hash"),
    [
        ("", 0),
        ("g1", 3242),
        ("hello", 99162322),
        ("polygenelubricants", 0),  # the smallest int, which has no absolute value
        ("console-consumer-12345", 158455506),
        ("😀", 1772899),  # two UTF-16 units
        ("é漢", 35673),
    ],
)
def test_the_hash_is_that_of_java(group_id: str, java_hash: int) -> None:
    assert partition_of(group_id, 1 << 31) == java_hash
    assert partition_of(group_id, 50) == java_hash % 50
