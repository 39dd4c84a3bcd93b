"""Where rows go: to their own partition, to their key's, or to the one whose turn it is."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.columnar.encoding import Rows
from strandline.records.partitioner import partition_for
from strandline.spark.sink.errors import ColumnError
from strandline.spark.sink.routing import Router, groups
from strandline.spark.sink.rows import SinkRows

COUNTS = {"t": 4, "u": 2, "one": 1}


def router(topic: str | None = "t", turn_bytes: int = 1 << 20) -> Router:
    return Router(topic, COUNTS.__getitem__, turn_bytes, random.Random(1))


def table(count: int, *, keys=None, topics=None, partitions=None, value: bytes = b"v") -> SinkRows:
    key = None if keys is None else pa.array(keys, pa.binary())
    rows = Rows(key, pa.array([value] * count, pa.binary()), None, np.zeros(count, dtype=np.int64))
    topic = None if topics is None else pa.array(topics, pa.string())
    return SinkRows(rows, topic, None if partitions is None else pa.array(partitions, pa.int32()))


def routed(router: Router, table: SinkRows) -> dict[tuple[str, int], list[int]]:
    """The rows of each partition, which come up once."""
    found: dict[tuple[str, int], list[int]] = {}
    for topic, partition, picked in router.route(table):
        assert (topic, partition) not in found
        found[topic, partition] = list(range(len(table.rows.value))) if picked is None else picked.tolist()
    return found


def test_keys_go_where_the_java_client_puts_them() -> None:
    keys = [b"%d" % n for n in range(200)]
    found = routed(router(), table(200, keys=keys))
    assert found == {
        ("t", partition): [n for n in range(200) if partition_for(keys[n], 4) == partition] for partition in range(4)
    }


def test_an_empty_key_is_a_key() -> None:
    found = routed(router(), table(3, keys=[b"", b"", b""]))
    assert found == {("t", partition_for(b"", 4)): [0, 1, 2]}


def test_rows_without_keys_stay_together() -> None:
    assert [len(rows) for rows in routed(router(), table(100)).values()] == [100]
    assert [len(rows) for rows in routed(router(), table(100, keys=[None] * 100)).values()] == [100]


def test_rows_without_keys_spread_by_their_bytes() -> None:
    found = routed(router(turn_bytes=11_200), table(400, value=b"v" * 100))
    assert {key: len(rows) for key, rows in found.items()} == {("t", partition): 100 for partition in range(4)}
    assert all(rows == list(range(rows[0], rows[0] + 100)) for rows in found.values())


def test_a_rows_own_partition_comes_before_its_key() -> None:
    key = next(b"%d" % n for n in range(99) if partition_for(b"%d" % n, 4) == 1)
    found = routed(router(), table(3, keys=[key, key, None], partitions=[2, None, 2]))
    assert found == {("t", 2): [0, 2], ("t", 1): [1]}


@pytest.mark.parametrize("wrong", [-1, -7, 4, 2**31 - 1])
def test_a_partition_that_is_not_there_is_refused_with_those_that_are(wrong: int) -> None:
    with pytest.raises(ColumnError, match=f"column 'partition' has {wrong}, but topic 't' has partitions 0-3"):
        routed(router(), table(3, partitions=[0, wrong, None]))


def test_each_topic_has_partitions_of_its_own() -> None:
    topics, keys = ["u", "one", "u", "t", "one"], [b"a", None, b"b", b"c", b"d"]
    found = routed(router(None), table(5, topics=topics, keys=keys))
    assert found.pop(("one", 0)) == [1, 4]
    assert found.pop(("t", partition_for(b"c", 4))) == [3]
    assert {n: partition for (_, partition), rows in found.items() for n in rows} == {
        0: partition_for(b"a", 2),
        2: partition_for(b"b", 2),
    }
    with pytest.raises(ColumnError, match="column 'partition' has 3, but topic 'u' has partitions 0-1"):
        routed(router(None), table(2, topics=["t", "u"], partitions=[3, 3]))


def test_a_row_without_a_topic_is_refused() -> None:
    with pytest.raises(ColumnError, match="column 'topic' has a row without a topic"):
        routed(router(None), table(2, topics=["t", None]))


def test_the_option_wins_over_the_column() -> None:
    assert {topic for topic, _ in routed(router("u"), table(2, topics=["t", None]))} == {"u"}


def test_a_topic_is_asked_for_once() -> None:
    asked = []

    def count(topic: str) -> int:
        asked.append(topic)
        return 2

    one = Router(None, count, 1000, random.Random(1))
    for _ in range(3):
        routed(one, table(2, topics=["t", "u"]))
    assert asked == ["t", "u"]


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(COUNTS)), st.none() | st.binary(max_size=3), st.none() | st.just(0)),
        min_size=1,
        max_size=50,
    ),
    st.integers(1, 200),
)
def test_every_row_goes_to_one_partition_and_rows_keep_their_order(rows, turn_bytes) -> None:
    topics, keys, partitions = (list(column) for column in zip(*rows, strict=True))
    found = routed(router(None, turn_bytes), table(len(rows), topics=topics, keys=keys, partitions=partitions))
    assert sorted(n for picked in found.values() for n in picked) == list(range(len(rows)))
    for (topic, partition), picked in found.items():
        assert picked == sorted(picked)
        assert 0 <= partition < COUNTS[topic]
        for n in picked:
            assert topics[n] == topic
            if partitions[n] is not None:
                assert partition == partitions[n]
            elif keys[n] is not None:
                assert partition == partition_for(keys[n], COUNTS[topic])


@given(st.lists(st.integers(0, 5) | st.integers(32_000, 40_000), max_size=40))
def test_groups_are_ascending_and_stable(numbers) -> None:
    found = {
        number: list(range(len(numbers))) if positions is None else positions.tolist()
        for number, positions in groups(np.array(numbers, dtype=np.int32))
    }
    assert list(found) == sorted(set(numbers))
    assert found == {number: [n for n, each in enumerate(numbers) if each == number] for number in found}
