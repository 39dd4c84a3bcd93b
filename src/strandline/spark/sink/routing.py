"""Which rows of an Arrow batch go to which partition of which topic.

A row's own partition comes first, then its key (murmur2, as the Java client's partitioner, so that keys meet those of other
producers), then the sticky choice. The topic of the options wins over the column.

Always true: every row goes to exactly one partition, and the rows of a partition keep their order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from strandline.columnar.encoding import partitions_of
from strandline.columnar.spans import spans_of
from strandline.spark.sink.errors import ColumnError
from strandline.spark.sink.sticky_partitions import StickyPartitions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from strandline.spark.sink.rows import SinkRows

RECORD_OVERHEAD_BYTES = 12
"""About what a record takes besides key and value: lengths, deltas, a count of headers."""
UNDECIDED = -1


class RoutedRows(NamedTuple):
    topic: str
    partition: int
    picked: NDArray[np.int64] | None
    """The numbers of its rows, ascending; None: all of them."""


class Router:
    """For one task. `partitions_count` asks the cluster, and says so if there is no such topic."""

    def __init__(
        self,
        topic: str | None,
        partitions_count: Callable[[str], int],
        turn_bytes: int,
        randomness: random.Random,
    ) -> None:
        self._topic = topic
        self._ask = partitions_count
        self._counts: dict[str, int] = {}
        self._sticky: dict[str, StickyPartitions] = {}
        self._turn_bytes = turn_bytes
        self._randomness = randomness

    def route(self, table: SinkRows) -> Iterator[RoutedRows]:
        for topic, picked in self._topics(table):
            partitions = self._partitions(topic, table, picked)
            for partition, positions in groups(partitions):
                if positions is None or picked is None:
                    yield RoutedRows(topic, partition, picked if positions is None else positions)
                else:
                    yield RoutedRows(topic, partition, picked[positions])

    def _topics(self, table: SinkRows) -> Iterator[tuple[str, NDArray[np.int64] | None]]:
        if self._topic is not None:
            yield self._topic, None
            return
        column = table.topic
        assert column is not None, "without the option there is a column"
        if column.null_count:
            raise ColumnError("column 'topic' has a row without a topic; fill it, or set the option 'topic'")
        encoded = column.dictionary_encode()
        names = encoded.dictionary.to_pylist()
        for code, picked in groups(encoded.indices.to_numpy()):
            yield names[code], picked

    def _partitions(self, topic: str, table: SinkRows, picked: NDArray[np.int64] | None) -> NDArray[np.int32]:
        """One for each picked row."""
        count = self._counts.get(topic)
        if count is None:
            count = self._counts[topic] = self._ask(topic)
        partitions = self._requested(topic, count, table, picked)
        undecided = np.flatnonzero(partitions == UNDECIDED)
        if len(undecided):
            open_rows = undecided if picked is None else picked[undecided]
            key = _take(table.rows.key, open_rows, len(table.rows.value))
            if key is not None and key.null_count < len(key):
                partitions[undecided] = partitions_of(key, count)
                undecided = np.flatnonzero(partitions == UNDECIDED)
                open_rows = undecided if picked is None else picked[undecided]
        if len(undecided):
            sticky = self._sticky.get(topic)
            if sticky is None:
                sticky = self._sticky[topic] = StickyPartitions(count, self._turn_bytes, self._randomness)
            partitions[undecided] = sticky.partitions_for(_sizes(table, open_rows))
        return partitions

    def _requested(
        self, topic: str, count: int, table: SinkRows, picked: NDArray[np.int64] | None
    ) -> NDArray[np.int32]:
        """The partitions that the column names; UNDECIDED where it is null or missing."""
        if table.partition is None:
            return np.full(len(table.rows.value) if picked is None else len(picked), UNDECIDED, dtype=np.int32)
        column = table.partition if picked is None else table.partition.take(pa.array(picked))
        said = column.drop_null().to_numpy()
        wrong = said[(said < 0) | (said >= count)]
        if len(wrong):
            raise ColumnError(f"column 'partition' has {wrong[0]}, but topic '{topic}' has partitions 0-{count - 1}")
        requested: NDArray[np.int32] = column.fill_null(UNDECIDED).to_numpy()
        return requested if requested.flags.writeable else requested.copy()


def groups(numbers: NDArray[np.int32]) -> Iterator[tuple[int, NDArray[np.int64] | None]]:
    """Each number that occurs, ascending, and the positions where it does; None if it is the only one."""
    if not len(numbers):
        return
    low, high = int(numbers.min()), int(numbers.max())
    if low == high:
        yield low, None
        return
    # Sixteen bits are sorted by radix, several times faster.
    narrow = numbers.astype(np.int16) if high <= np.iinfo(np.int16).max else numbers
    order = np.argsort(narrow, kind="stable")
    ordered = narrow[order]
    starts = np.flatnonzero(np.diff(ordered)) + 1
    for positions in np.split(order, starts):
        yield int(numbers[positions[0]]), positions


def _take(column: pa.Array | None, picked: NDArray[np.int64], count: int) -> pa.Array | None:
    return column if column is None or len(picked) == count else column.take(pa.array(picked))


def _sizes(table: SinkRows, picked: NDArray[np.int64]) -> NDArray[np.int64]:
    """About the bytes of these rows, which have no key."""
    sizes: NDArray[np.int64] = np.maximum(spans_of(table.rows.value).sizes[picked], 0) + RECORD_OVERHEAD_BYTES
    if table.rows.headers is not None:
        sizes += table.rows.headers.nbytes // len(table.rows.value)
    return sizes
