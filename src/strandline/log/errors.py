"""What a log may have to say besides an answer."""

from __future__ import annotations

from strandline.errors import ErrorCode, KafkaError
from strandline.ports import File


class NotCached(Exception):
    """The bytes are not in memory and reading them here would hold up the event loop: warm them up, then ask again."""

    def __init__(self, file: File, position: int, size: int) -> None:
        super().__init__(f"{file.path} at {position}, {size} bytes")
        self.file = file
        self.position = position
        self.size = size

    def warm(self) -> None:
        """Read the bytes where blocking is allowed, so that they are cached for the next try."""
        self.file.read_blocking(self.position, self.size)


class RecordsBesideLoop(Exception):
    """Checking the records of this batch here would hold up the event loop: copy it, check it beside, then append again."""


class CorruptLog(KafkaError):
    """A file that must be sound is not; says which and where. A reader gets CORRUPT_MESSAGE."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


class CorruptBatch(KafkaError):
    """A stretch of a segment that may not be served nor replicated: it fails its checksum, or can't be what was written there.

    A reader gets KAFKA_STORAGE_ERROR, which consumers and followers try again: it may be repaired meanwhile. (Consumers of a
    partition with one replica get CORRUPT_MESSAGE: there is no other copy.)
    """

    def __init__(
        self,
        directory: str,
        segment_base_offset: int,
        position: int,
        end_position: int,
        first_offset: int,
        end_offset: int,
        reason: str,
    ) -> None:
        super().__init__(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{directory}: {reason}; offsets {first_offset} to {end_offset - 1}, "
            f"bytes {position} to {end_position} of segment {segment_base_offset}, can't be served",
        )
        self.directory = directory
        self.segment_base_offset = segment_base_offset
        self.position = position
        self.end_position = end_position
        """Where the next sound batch starts, or the segment ends."""
        self.first_offset = first_offset
        """One past the last sound batch before."""
        self.end_offset = end_offset
        """The base offset of the next sound batch, or where the segment ends."""
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        """So that it can come from another process as it is."""
        return CorruptBatch, (
            self.directory,
            self.segment_base_offset,
            self.position,
            self.end_position,
            self.first_offset,
            self.end_offset,
            self.reason,
        )

    def ending_at(self, end_offset: int) -> CorruptBatch:
        """The same stretch, of which it is known now where it ends."""
        return CorruptBatch(
            self.directory,
            self.segment_base_offset,
            self.position,
            self.end_position,
            self.first_offset,
            end_offset,
            self.reason,
        )

    @property
    def stretch(self) -> tuple[int, int, int, int]:
        """What is damaged, however it was noticed."""
        return self.segment_base_offset, self.position, self.end_position, self.end_offset
