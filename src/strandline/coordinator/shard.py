"""A shard: what one partition of a coordinator's topic adds up to, in memory; and how its records become bytes.

Always true: what survives a change of coordinator is in the records, and only `replay` changes it.
"""

from __future__ import annotations

from typing import Protocol

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.coordinator.timers import CoordinatorTimers
from strandline.metadata.image import MetadataImage
from strandline.wire.codec import Buffer


class Framing(Protocol):
    """The key and the value of a record, as they are in the topic: a module with these functions will do."""

    def encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        """struct.error if it can't be written down: a name is too long."""

    def decode(self, key: Buffer | None, value: Buffer | None) -> CoordinatorRecord | None:
        """None for one of a type that isn't ours; MalformedRequest if it can't be read."""


class CoordinatorShard(Protocol):
    @property
    def timers(self) -> CoordinatorTimers: ...

    def replay(self, record: CoordinatorRecord, at_ms: int, producer_id: int = -1) -> None:
        """A record that was appended, or is read back. One of a transaction waits for its marker."""

    def replay_marker(self, producer_id: int, *, commit: bool) -> None:
        """The end of a transaction, of which there are records in the topic."""

    def loaded(self, at: Moment) -> CoordinatorResult | None:
        """Everything was read back."""

    def metadata_changed(
        self, image: MetadataImage, deleted_topics: frozenset[tuple[str, bytes]], at: Moment
    ) -> CoordinatorResult | None:
        """There is a newer image, in which these topics (name, id) are no more."""

    def unload(self) -> None:
        """This node no longer coordinates: waiting requests are answered with NOT_COORDINATOR."""
