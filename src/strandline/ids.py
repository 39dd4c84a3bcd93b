"""Kafka's 128-bit ids (topics, directories, clusters, incarnations), and how a partition is named.

Always true: a Uuid is its sixteen bytes, so raw bytes from the wire find it in a dict; its text is unpadded URL-safe base64.
"""

from __future__ import annotations

import base64
import random


class Uuid(bytes):
    """Sixteen bytes that print as Kafka prints them."""

    __slots__ = ()

    def __new__(cls, raw: bytes | memoryview) -> Uuid:
        if len(raw) != 16:
            raise ValueError(f"a Uuid has 16 bytes, not {len(raw)}")
        return super().__new__(cls, raw)

    @classmethod
    def parse(cls, text: str) -> Uuid:
        """From Kafka's 22-character text; ValueError if it is not one."""
        if len(text) > 24:
            raise ValueError(f"'{text}' is too long for a Uuid (22 characters of URL-safe base64)")
        try:
            return cls(base64.b64decode(text.rstrip("=") + "==", altchars=b"-_", validate=True))
        except ValueError as error:
            raise ValueError(f"'{text}' is not a Uuid (22 characters of URL-safe base64)") from error

    @classmethod
    def draw(cls, randomness: random.Random) -> Uuid:
        """A new random id. Kafka avoids its reserved low ids and a leading '-', which command lines would take for a flag."""
        while True:
            drawn = cls(randomness.randbytes(16))
            if drawn[:15] != bytes(15) and not str(drawn).startswith("-"):
                return drawn

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self).rstrip(b"=").decode()

    def __repr__(self) -> str:
        return f"Uuid({self})"


ZERO_UUID = Uuid(bytes(16))
"""No id: not known, or not given."""

TopicPartition = tuple[str, int]
"""One partition: the name of its topic and its index there."""
