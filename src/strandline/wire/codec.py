"""Reading and writing one struct in one version.

Always true: reading either succeeds or raises MalformedRequest that names the field, whatever the bytes; it keeps nothing of
the caller's buffer. Bytes after the message are left alone. What writing raises is a bug of ours, and also names the field.
"""

from __future__ import annotations

import struct as structs
from collections.abc import Generator
from functools import cached_property
from typing import Any

from strandline.wire.decoder import Decode, Decoded, DecodeInSlices, decoder, decoder_in_slices
from strandline.wire.encoder import Encode, EncodeInSlices, encoder, encoder_in_slices
from strandline.wire.errors import MalformedRequest
from strandline.wire.primitives import REQUEST_OBJECTS_MAX
from strandline.wire.source import field_at
from strandline.wire.structs import Struct

Buffer = bytes | bytearray | memoryview


class Codec:
    """The functions of one struct, each generated when it is first used: a broker never writes a request."""

    def __init__(self, struct: Struct, version: int) -> None:
        self.struct = struct
        self.title = f"{struct.name} version {version}"

    @cached_property
    def _decode(self) -> Decode:
        return decoder(self.struct, self.title)

    @cached_property
    def _encode(self) -> Encode:
        return encoder(self.struct, self.title)

    @cached_property
    def _decode_in_slices(self) -> DecodeInSlices:
        return decoder_in_slices(self.struct, self.title)

    @cached_property
    def _encode_in_slices(self) -> EncodeInSlices:
        return encoder_in_slices(self.struct, self.title)

    def decode(self, buffer: Buffer, position: int = 0, objects_max: int = REQUEST_OBJECTS_MAX) -> tuple[Any, int]:
        """The message that begins at this position, and the position after it."""
        return self.decode_counted(buffer, position, objects_max)[:2]

    def decode_counted(self, buffer: Buffer, position: int, objects_max: int) -> Decoded:
        """The same, and how many objects it became."""
        # Slices of bytes are several times cheaper than those of a memoryview, so one copy pays for itself.
        start = 0 if isinstance(buffer, bytes) else position
        data = buffer if isinstance(buffer, bytes) else bytes(memoryview(buffer)[position:])
        try:
            message, end, left = self._decode(data, position - start, objects_max - self.struct.objects)
        except (MalformedRequest, IndexError, structs.error, UnicodeDecodeError) as error:
            raise self._malformed(error) from None
        return message, start + end, objects_max - left

    def decode_in_slices(
        self, data: bytes, position: int = 0, objects_max: int = REQUEST_OBJECTS_MAX
    ) -> Generator[int, None, Decoded]:
        """The same, pausing after every array element."""
        try:
            message, end, left = yield from self._decode_in_slices(data, position, objects_max - self.struct.objects)
        except (MalformedRequest, IndexError, structs.error, UnicodeDecodeError) as error:
            raise self._malformed(error) from None
        return message, end, objects_max - left

    def _malformed(self, error: Exception) -> MalformedRequest:
        if isinstance(error, MalformedRequest):
            reason = str(error)
        else:
            reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else "the bytes end here"
        field = field_at(error.__traceback__)
        return MalformedRequest(f"{self.title}, {field}: {reason}" if field else f"{self.title}: {reason}")

    def encode(self, message: object) -> bytes:
        try:
            return self._encode(message)
        except Exception as error:
            error.add_note(f"while writing {self.title}, {field_at(error.__traceback__)}")
            raise

    def encode_in_slices(self, message: object) -> Generator[int, None, bytes]:
        """The same, pausing after every array element."""
        try:
            return (yield from self._encode_in_slices(message))
        except Exception as error:
            error.add_note(f"while writing {self.title}, {field_at(error.__traceback__)}")
            raise
