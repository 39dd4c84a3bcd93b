"""The transactional ids of one partition of `__transaction_state`: requests are dispatched to transitions, records replayed.

    result = shard.end(request, at, answer)

Always true: what survives a change of coordinator is in the records, and only `replay` changes it; markers are sent only of a
decision that is committed (TXN-T30), with the leader epoch of the load that sends them (TXN-T31).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.coordinator.timers import CoordinatorTimers
from strandline.errors import ErrorCode
from strandline.ids import TopicPartition
from strandline.metadata.image import MetadataImage
from strandline.transactions import (
    completion,
    ending,
    expiration,
    initialization,
    journal,
    listing,
    partitions,
    timeouts,
)
from strandline.transactions.dependencies import TransactionDependencies
from strandline.transactions.markers import EndMarker
from strandline.transactions.metadata import ProducerIdAndEpoch, TransactionMetadata
from strandline.transactions.records import TransactionLogKey
from strandline.transactions.states import TransactionState


class TransactionShard:
    def __init__(self, partition: int, coordinator_epoch: int, dependencies: TransactionDependencies) -> None:
        self.partition = partition
        self.coordinator_epoch = coordinator_epoch
        self.dependencies = dependencies
        self.transactions: dict[str, TransactionMetadata] = {}
        self.unmarked: dict[str, set[TopicPartition]] = {}
        """Of transactions whose decision is committed: the partitions that have no marker yet."""
        self.refused_markers: set[str] = set()
        """Transactional ids whose markers a leader refuses although this is the newest coordinator (TXN-T33)."""
        self.fenced_by: dict[str, ProducerIdAndEpoch] = {}
        """The producer that a transactional id had when the journal last noted that an older one was refused."""
        self.timers = CoordinatorTimers()

    # Requests

    def initialize(
        self, request: initialization.Initialization, at: Moment, answer: initialization.ProducerAnswer
    ) -> CoordinatorResult | None:
        with journal.noting_fenced(self, request.transactional_id, request.expected):
            return initialization.initialize(self, request, at, answer)

    def add_partitions(
        self, request: partitions.Addition, at: Moment, answer: partitions.CodeAnswer
    ) -> CoordinatorResult | None:
        with journal.noting_fenced(self, request.transactional_id, request.producer):
            return partitions.add(self, request, at, answer)

    def verify(self, request: partitions.Addition) -> dict[TopicPartition, ErrorCode]:
        """Whether these partitions are part of the transaction. A read."""
        with journal.noting_fenced(self, request.transactional_id, request.producer):
            return partitions.verify(self, request)

    def end(
        self, request: ending.Ending, at: Moment, answer: initialization.ProducerAnswer
    ) -> CoordinatorResult | None:
        with journal.noting_fenced(self, request.transactional_id, request.producer):
            return ending.end(self, request, at, answer)

    def describe(self, transactional_id: str) -> listing.TransactionDescription:
        """A read."""
        return listing.describe(self, transactional_id)

    def list(self, filters: listing.TransactionFilters, at: Moment) -> list[listing.ListedTransaction]:
        """A read."""
        return listing.select(self, filters, at)

    # Markers

    def marked(self, marker: EndMarker, found: Collection[TopicPartition], at: Moment) -> CoordinatorResult | None:
        """These partitions have the marker, or are no more."""
        return completion.marked(self, marker, found, at)

    def refused(self, marker: EndMarker) -> None:
        """A leader knows a newer epoch than the marker's."""
        completion.refused(self, marker)

    # Life

    def replay(self, record: CoordinatorRecord, at_ms: int, producer_id: int = -1) -> None:
        """A record that was appended, or is read back."""
        key, metadata = record
        assert isinstance(key, TransactionLogKey)
        assert metadata is None or isinstance(metadata, TransactionMetadata)
        transactional_id = key.transactional_id
        if metadata is None:
            self.transactions.pop(transactional_id, None)
            self.fenced_by.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = metadata
        if metadata is None or not metadata.state.is_prepared:
            self.unmarked.pop(transactional_id, None)
            self.refused_markers.discard(transactional_id)

    def loaded(self, at: Moment) -> CoordinatorResult | None:
        """Everything was read back. What was decided goes on once all of it is committed (TXN-TF2); timeouts start anew."""
        for transactional_id, metadata in self.transactions.items():
            if metadata.state is TransactionState.ONGOING:
                self.transactions[transactional_id] = replace(metadata, started_s=at.now)
        journal.loaded(self)
        timeouts.schedule(self, at)
        expiration.schedule(self, at)
        prepared = {tid: metadata for tid, metadata in self.transactions.items() if metadata.state.is_prepared}
        return CoordinatorResult([], committed=partial(self._resume, prepared))

    def _resume(self, prepared: Mapping[str, TransactionMetadata], at: Moment) -> None:
        """What was read back is committed. A decision that was made since is not, perhaps: it goes on by itself."""
        for transactional_id, metadata in prepared.items():
            if self.transactions.get(transactional_id) is metadata:
                completion.begin_later(self, transactional_id, metadata, at)

    def replay_marker(self, producer_id: int, *, commit: bool) -> None:
        """The records of this topic are never part of a transaction."""

    def metadata_changed(
        self, image: MetadataImage, deleted_topics: frozenset[tuple[str, bytes]], at: Moment
    ) -> CoordinatorResult | None:
        """Markers of deleted topics are settled where they are sent."""
        return None

    def unload(self) -> None:
        """This node no longer coordinates these transactions."""
        self.timers.clear()
        self.dependencies.forget_markers(self.partition, self.coordinator_epoch)

    def check_invariants(self) -> None:
        for transactional_id in self.unmarked:
            metadata = self.transactions.get(transactional_id)
            assert metadata is not None, f"{transactional_id} is marked, and not there"
            assert metadata.state.is_prepared, f"{transactional_id} has no decision to mark"
            assert self.unmarked[transactional_id] <= metadata.partitions, f"{transactional_id}: a stranger is marked"
        for transactional_id, metadata in self.transactions.items():
            assert metadata.epoch >= 0, f"{transactional_id} has no epoch"
            assert metadata.state is not TransactionState.EMPTY or not metadata.partitions, transactional_id
            is_timed = metadata.started_s < math.inf
            assert not is_timed or metadata.state is TransactionState.ONGOING, f"{transactional_id} is not open"
