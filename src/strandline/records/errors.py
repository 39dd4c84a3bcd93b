"""What bytes that claim to be a batch can be guilty of.

Always true: every function of this package that reads foreign bytes raises one of these and nothing else.
CorruptRecord (CORRUPT_MESSAGE) means damage, so sending again may help; InvalidRecord (INVALID_RECORD) means that
the sender wrote it so. `except CorruptRecord` catches both, a timestamp that its topic does not take (INVALID_TIMESTAMP),
and an unknown codec (UNSUPPORTED_COMPRESSION_TYPE).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from strandline.errors import ErrorCode, KafkaError


class RecordError(NamedTuple):
    """A record that is to blame, as a Produce answer lists it (KIP-467)."""

    index: int  # type: ignore[assignment]  # its place in the batch, and nobody looks for one in a tuple of two
    message: str


class CorruptRecord(KafkaError):
    """The bytes are not what somebody wrote: a length, a magic or a CRC that cannot be."""

    def __init__(
        self, message: str, code: ErrorCode = ErrorCode.CORRUPT_MESSAGE, record_errors: Sequence[RecordError] = ()
    ) -> None:
        super().__init__(code, message)
        self.record_errors = tuple(record_errors)


class InvalidRecord(CorruptRecord):
    """The batch is whole, but its content breaks the format or a rule of its topic."""

    def __init__(self, message: str, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(message, ErrorCode.INVALID_RECORD, record_errors)


class InvalidTimestamp(CorruptRecord):
    """The batch is whole, but a timestamp in it is not one that its topic takes."""

    def __init__(self, message: str, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(message, ErrorCode.INVALID_TIMESTAMP, record_errors)
