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


class CorruptLog(KafkaError):
    """A file that must be sound is not; says which and where. Whoever wanted to read it is told CORRUPT_MESSAGE."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)
