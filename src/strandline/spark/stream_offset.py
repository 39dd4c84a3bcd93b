"""One offset of a stream, as it goes to Spark and comes back: StreamOffsets, and where the first batch started.

Spark keeps the end of each batch in its checkpoint and takes it for the start of the next. Of the first batch it keeps no start,
but asks initialOffset() again when a query that died in it starts anew. "Latest" is another number by then, and a batch from there
to the end that was planned would leave out records. So the end of a first batch says where it starts, and that is believed.
`stream_reader.py` makes offsets, within the bounds of `bounds.py`.

Always true: what is read and not changed is written as it was, since Spark takes different texts for new data.
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.spark.offsets import Json, StreamOffsets

FIRST_START = "(start of the first batch)"
"""No topic can be called so."""


class StreamOffset(NamedTuple):
    offsets: StreamOffsets
    first_start: StreamOffsets | None = None

    def to_json(self) -> Json:
        value = self.offsets.to_json()
        return value if self.first_start is None else {**value, FIRST_START: self.first_start.to_json()}


def read_offset(value: Json) -> StreamOffset:
    """SparkError if it is no offset of ours."""
    first = value.get(FIRST_START)
    offsets = StreamOffsets.from_json({topic: entry for topic, entry in value.items() if topic != FIRST_START})
    return StreamOffset(offsets, None if first is None else StreamOffsets.from_json(first))
