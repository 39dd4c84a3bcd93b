"""What bytes that claim to be a batch can be guilty of.

Always true: every function of this package that reads foreign bytes raises one of these and nothing else.
CorruptRecord (CORRUPT_MESSAGE) means damage, so sending again may help; InvalidRecord (INVALID_RECORD) means that
the sender wrote it so. `except CorruptRecord` catches both, and the codec nobody knows (UNSUPPORTED_COMPRESSION_TYPE).
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.errors import ErrorCode, KafkaError


class CorruptRecord(KafkaError):
    """The bytes are not what somebody wrote: a length, a magic or a CRC that cannot be."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.CORRUPT_MESSAGE) -> None:
        super().__init__(code, message)


class InvalidRecord(CorruptRecord):
    """The batch is whole, but its content breaks the format or a rule of its topic."""

    def __init__(self, message: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(message, ErrorCode.INVALID_RECORD)
        self.record_errors = tuple(record_errors)
        """Index within the batch and sentence of each record that is to blame, as a Produce answer lists them."""
