"""Progress of a stream, committed as the offsets of a group, so that its lag shows in every Kafka tool.

Spark's own truth is its checkpoint: the group's offsets follow it and are read only by `startingOffsets=group`. No consumer joins
the group; a group that has members of its own refuses the commits. A source learns of a finished batch with the next trigger:
until then, and after Trigger.Once, which has none, that batch still shows as lag.

Always true: what is committed is where a finished batch ended, or where the query starts, never the end of a batch that is still
running. A commit that fails holds up the query for a few seconds at most and does not fail it, except for the first one if it can
never succeed: then the option is wrong.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from strandline.client.blocking import Admin
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.spark.checkpointed_offsets import StreamOffsets
from strandline.spark.errors import OptionError

TIMEOUT_MS = 5_000
"""For the client that is used here: a stream does not wait longer for a coordinator."""
TRY_AGAIN_AFTER_S = 10.0
REPEAT_AFTER_S = 3_600.0
"""Offsets of a group without members expire (offsets.retention.minutes), so those of an idle topic are committed again."""

_log = logging.getLogger("strandline.spark")


class GroupProgress:
    def __init__(self, admin: Admin, group_id: str, now: Callable[[], float] = time.monotonic) -> None:
        self._admin = admin
        self._group_id = group_id
        self._now = now
        self._committed: dict[TopicPartition, int] = {}
        self._rest_until = 0.0
        self._repeat_at = 0.0

    def finished(self, offsets: StreamOffsets) -> None:
        """Every record below these offsets has been processed."""
        now = self._now()
        if now >= self._repeat_at:
            changed = dict(offsets.offsets)
        else:
            changed = {key: offset for key, offset in offsets.offsets.items() if self._committed.get(key) != offset}
        if not changed or now < self._rest_until:
            return
        error = self._commit(changed)
        if error is None:
            self._committed |= changed
            self._repeat_at = now + REPEAT_AFTER_S
            return
        if not self._committed and not error.retriable:
            raise OptionError(f"option 'groupId': {_why(self._group_id, error)}")
        _log.warning("group %r does not show this query's progress now: %s", self._group_id, error)
        self._rest_until = self._now() + TRY_AGAIN_AFTER_S

    def _commit(self, offsets: dict[TopicPartition, int]) -> KafkaError | None:
        """The first error, if there is one."""
        wanted = {key: OffsetAndMetadata(offset) for key, offset in offsets.items()}
        try:
            answers = self._admin.alter_group_offsets(self._group_id, wanted)
        except KafkaError as error:
            return error
        return next((error for error in answers.values() if error is not None), None)


def _why(group_id: str, error: KafkaError) -> str:
    if error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NON_EMPTY_GROUP, ErrorCode.STALE_MEMBER_EPOCH):
        return f"group '{group_id}' has consumers of its own; name a group that only this query uses"
    return f"the progress cannot be committed to group '{group_id}': {error}"
