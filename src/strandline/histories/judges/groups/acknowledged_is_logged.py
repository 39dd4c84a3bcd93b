"""C12: an offset is acknowledged once it is in its coordinator's log below the high watermark; every later one has it then (I1)."""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.groups import framing
from strandline.groups.records import OffsetCommitKey
from strandline.histories.batches import Batch
from strandline.histories.exchanges import OFFSET_COMMIT, GroupExchange
from strandline.histories.groups.sight import GroupJudge, GroupSight
from strandline.histories.replica_sight import Key
from strandline.histories.sight import Violation
from strandline.records.batch import decode

OFFSETS_BACK = 100
"""So far it is looked for at first."""


class AcknowledgedIsLogged(GroupJudge):
    def answered(self, sight: GroupSight, exchange: GroupExchange) -> None:
        if exchange.api_key != OFFSET_COMMIT:
            return
        asked = {key: partition.committed_offset for key, partition in sight.keys_of(exchange.request.topics)}
        told = sight.keys_of(exchange.response.topics)
        wanted = {(key, asked[key]) for key, each in told if each.error_code == ErrorCode.NONE and key in asked}
        log_key = sight.offsets_key
        replica = None if log_key is None else sight.replicas.replicas.get((exchange.broker_id, log_key))
        if (
            log_key is None
            or replica is None
            or not replica.leads
            or sight.replicas.is_rotten(exchange.broker_id, log_key)
        ):
            return  # the answer was decided before it was deposed
        end = replica.high_watermark
        for start in (max(0, end - OFFSETS_BACK), 0):
            for batch in sight.replicas.batches(exchange.broker_id, log_key, start, end):
                wanted -= _committed(sight, batch)
            if not wanted:
                return
        for key, offset in sorted(wanted):
            raise Violation(f"acknowledges {offset} of {sight.name(key)}, which is not in its log below {end}")


def _committed(sight: GroupSight, batch: Batch) -> set[tuple[Key, int]]:
    """The offsets of the group that stand in a batch."""
    found: set[tuple[Key, int]] = set()
    topics = sight.replicas.image.topics
    for record in decode(batch.content, check_crc=False):
        if record.value is None or record.key is None:
            continue
        read = framing.decode(record.key, record.value)
        if read is None or not isinstance(read.key, OffsetCommitKey) or read.key.group != sight.group_id:
            continue
        if read.key.topic in topics:
            found.add(((topics[read.key.topic].topic_id, read.key.partition), read.value.offset))  # type: ignore[union-attr]
    return found
