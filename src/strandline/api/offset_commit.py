"""OffsetCommit (8), versions 2-10: how far a group has come.

v5 has no retention time any more; v6 takes leader epochs; v7 knows static members; v8 is flexible; v9 is for members of the
consumer protocol too (STALE_MEMBER_EPOCH); v10 names topics by id, so that one made anew under an old name is not mistaken for it.
The answer comes once the offsets are committed to `__consumer_offsets` as with acks=all. One that waits does not hold up the next
request of its connection. An empty group id is allowed, as it always was.
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.groups.coordination import coordinate
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode
from strandline.groups.offsets.offset_commit import refused, refused_in_slices
from strandline.groups.shard import GroupShard

if TYPE_CHECKING:
    from strandline.wire.stubs.offset_commit import OffsetCommitRequest, OffsetCommitResponse

KEY: Final = 8
VERSIONS = range(2, 11)
OFFSETS_PER_REQUEST_MAX = 10_000
"""More would not fit into one batch of `__consumer_offsets`, as it is by default, or hardly."""
RETENTION_MS_MAX = 1 << 62
"""More is as good as for ever, and its end could not be written down."""


def handle(request: OffsetCommitRequest, ctx: RequestContext) -> MaybePending[OffsetCommitResponse]:
    if request.retention_time_ms > RETENTION_MS_MAX:
        request.retention_time_ms = RETENTION_MS_MAX
    if sum(len(topic.partitions) for topic in request.topics) > OFFSETS_PER_REQUEST_MAX:
        # As Kafka does once it has built a batch that is too large to be written.
        return answer(refused_in_slices(request, ErrorCode.INVALID_COMMIT_OFFSET_SIZE), request, ctx)
    return coordinate(
        ctx, request, GroupShard.commit_offsets, lambda code, message: refused(request, code), may_be_overtaken=True
    )
