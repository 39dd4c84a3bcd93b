"""A topic in a Metadata reply, encoded once and kept for as long as nothing it says has changed.

A cluster of 1,000 topics is asked for its metadata by every client that joins it, and most topics are as they were: the
reply is then joined from their bytes.

Always true: bytes are kept under the identity of the immutable images that they were made from, and those are kept with
them, so an entry can't be wrong, only useless. What is kept is bounded; past the bound all of it is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from strandline.metadata.image import BrokerImage, TopicImage
from strandline.wire import messages
from strandline.wire.codec import Codec
from strandline.wire.primitives import encode_unsigned_varint
from strandline.wire.structs import FIXED_SIZE

if TYPE_CHECKING:
    from strandline.wire.stubs.metadata import MetadataResponse

METADATA: Final = 3
KEPT_BYTES_MAX = 32 * 1024 * 1024
OVERHEAD_BYTES = 256
"""What an entry costs besides its bytes, roughly."""

Make = Callable[[TopicImage], "MetadataResponse.MetadataResponseTopic"]
Brokers = Mapping[int, BrokerImage]


class TopicBytes:
    """What was encoded before, by topic, brokers, and how the request wants to see them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int, tuple[object, ...]], tuple[bytes, TopicImage, Brokers]] = {}
        self._bytes = 0

    def of(self, topic: TopicImage, brokers: Brokers, version: int, seen_as: tuple[object, ...], make: Make) -> bytes:
        """The topic's bytes; `make` gives its message if there are none. `seen_as` is all else that `make` looks at."""
        key = (id(topic), id(brokers), (version, *seen_as))
        kept = self._kept.get(key)
        if kept is not None:
            return kept[0]
        data = encode_topic(version, make(topic))
        if self._bytes > KEPT_BYTES_MAX:
            self._kept.clear()
            self._bytes = 0
        self._kept[key] = (data, topic, brokers)
        self._bytes += len(data) + OVERHEAD_BYTES
        return data


def encode_topic(version: int, topic: MetadataResponse.MetadataResponseTopic) -> bytes:
    return _codec(version).encode(topic)


def join_reply(version: int, without_topics: MetadataResponse, topics: list[bytes]) -> bytes:
    """The body of a Metadata reply: the message without topics, with these topics in their place."""
    body = messages.encode_response(METADATA, version, without_topics)
    flexible, tail_size = _shape(version)
    count = encode_unsigned_varint(len(topics) + 1) if flexible else len(topics).to_bytes(4, "big")
    head_size = len(body) - tail_size - (1 if flexible else 4)
    return b"".join((body[:head_size], count, *topics, body[len(body) - tail_size :]))


@cache
def _codec(version: int) -> Codec:
    root = messages.response_family(METADATA).struct(version)
    struct = next(field.struct for field in root.fields if field.name == "topics")
    assert struct is not None
    return Codec(struct, version)


@cache
def _shape(version: int) -> tuple[bool, int]:
    """Whether this version is flexible, and how many bytes follow the topics, all of them of a fixed size."""
    root = messages.response_family(METADATA).struct(version)
    names = [field.name for field in root.untagged]
    after = root.untagged[names.index("topics") + 1 :]
    return root.flexible, sum(FIXED_SIZE[field.type] for field in after) + (1 if root.flexible else 0)
