"""What can be seen of a log: a `Log` as it is, to be read only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from strandline.config.topic_config import TopicConfig
from strandline.ports import File


class ObservedSegment(Protocol):
    @property
    def base_offset(self) -> int: ...

    @property
    def next_offset(self) -> int: ...

    @property
    def file(self) -> File: ...


class ObservedEpochs(Protocol):
    """The leader epochs of a log."""

    @property
    def latest(self) -> int: ...

    def epoch_at(self, offset: int) -> int:
        """The epoch in which the record at `offset` was written; -1 if unknown."""

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch at most `epoch` and where it ends in this log; (-1, -1) if that can't be said."""


class ObservedProducer(Protocol):
    """What a log remembers of a producer."""

    @property
    def epoch(self) -> int: ...

    @property
    def coordinator_epoch(self) -> int:
        """Of the last end of a transaction; -1 if there was none."""

    @property
    def current_txn_first_offset(self) -> int:
        """Where its open transaction begins; -1 if none is open."""

    @property
    def last_sequence(self) -> int:
        """Of what it wrote in its epoch; -1 if that is nothing. So is `last_offset`."""

    @property
    def last_offset(self) -> int: ...


class ObservedProducers(Protocol):
    """The producers of a log."""

    @property
    def by_id(self) -> Mapping[int, ObservedProducer]:
        """Those that are remembered, by their producer id."""

    @property
    def oldest_open_timestamp(self) -> int:
        """When the producer whose open transaction began first has last written; -1 if none is open."""

    @property
    def forgotten_early(self) -> int:
        """Those for which there was no room any more."""


class ObservedLog(Protocol):
    @property
    def directory(self) -> str: ...

    @property
    def config(self) -> TopicConfig: ...

    @property
    def size(self) -> int:
        """In bytes."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def recovery_point(self) -> int:
        """Everything below is on the device."""

    @property
    def truncations(self) -> int:
        """How often something was cut."""

    @property
    def segments(self) -> Sequence[ObservedSegment]: ...

    @property
    def epochs(self) -> ObservedEpochs: ...

    @property
    def producers(self) -> ObservedProducers: ...
