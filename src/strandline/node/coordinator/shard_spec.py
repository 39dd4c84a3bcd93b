"""What makes the shards of one internal topic other than those of another: all that a runner does not know itself.

Always true: what comes from the configuration is asked for whenever it is needed, since it may change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.coordinator.shard import CoordinatorShard, Framing
from strandline.node.coordinator.stats import CoordinatorStats
from strandline.records.compression import CompressionType

S = TypeVar("S", bound=CoordinatorShard)


class RegularWork(NamedTuple, Generic[S]):
    """What a shard does at intervals."""

    name: str
    interval_s: Callable[[], float]
    do: Callable[[S, Moment], CoordinatorResult | None]


@dataclass(frozen=True, slots=True)
class ShardSpec(Generic[S]):
    topic: str
    content: str
    """What is coordinated, in the plural, for the log."""
    framing: Framing
    new_shard: Callable[[int, int], S]
    """An empty one, of this partition and led in this epoch."""
    count: Callable[[S], int]
    """How many are coordinated in a shard, for the log."""
    codec: Callable[[], CompressionType]
    commit_timeout_s: Callable[[], float]
    """How long an answer waits for its records to be committed."""
    stats: CoordinatorStats
    on_written: Callable[[Sequence[CoordinatorRecord]], None]
    """Gets the records of an operation that will be appended."""
    regular_work: Sequence[RegularWork[S]] = ()
