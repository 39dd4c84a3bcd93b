"""Raw record batches of one partition, for callers without an event loop that decode them by themselves.

    for piece in PartitionFetcher(client, "topic", 0, start, end):
        decode(piece.data, start=piece.offset, end=end)

The next Fetch is under way while the caller works on a piece. Who leads is found again after elections, restarts and
lost connections, until nothing came for `timeout_s`; time that the caller spends on a piece does not count.

Always true: pieces are whole batches in the order of their offsets, and end when `end` is passed. The bytes of a large
piece are where the socket wrote them. That memory is used again once no view of it is left: so keep a piece, or a slice
of it, as long as it is needed; to let go of it before the next but one is asked for saves memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from strandline.client import blocking
from strandline.client.config import ConsumerConfig
from strandline.client.core.range_fetch import FetchedBytes
from strandline.client.errors import OffsetOutOfRange, TopicRecreated
from strandline.client.flow.range_fetch import RangeFetcher
from strandline.ids import Uuid

__all__ = ["FETCH_BYTES", "FetchedBytes", "OffsetOutOfRange", "PartitionFetcher", "TopicRecreated"]

FETCH_BYTES = 1 << 23
"""Per Fetch, unless the caller says otherwise."""


class PartitionFetcher:
    """The records from `start` to before `end`.
    `topic_id`: of the topic that is meant, whatever has its name by now.
    """

    def __init__(
        self,
        client: blocking.Client,
        topic: str,
        partition: int,
        start: int,
        end: int,
        config: ConsumerConfig | None = None,
        *,
        topic_id: Uuid | None = None,
        timeout_s: float = 120,
    ) -> None:
        self._client = client
        self._range = (topic, partition, start, end)
        self._config = config or ConsumerConfig(max_partition_fetch_bytes=FETCH_BYTES)
        self._topic_id = topic_id
        self._timeout_s = timeout_s

    def __iter__(self) -> Iterator[FetchedBytes]:
        """OffsetOutOfRange, TopicRecreated,
        LogTruncated or another KafkaError that names the partition and the offset.
        """
        run = self._client.scheduler.run
        fetcher = RangeFetcher(
            self._client.flow, *self._range, self._config, topic_id=self._topic_id, timeout_s=self._timeout_s
        )
        try:
            while (fetched := run(fetcher.next())) is not None:
                yield fetched
        finally:
            fetcher.close()
