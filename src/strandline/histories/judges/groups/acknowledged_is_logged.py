"""C12, E1: an offset is acknowledged once its coordinator's log has it below the high watermark; later ones have it
then (I1)."""

from __future__ import annotations

from functools import lru_cache

from strandline.errors import ErrorCode
from strandline.groups import framing
from strandline.groups.records import OffsetCommitKey
from strandline.histories.batches import LoggedBatch
from strandline.histories.exchanges import OFFSET_COMMIT, CoordinatorExchange
from strandline.histories.groups.observation import GroupJudge, GroupObservation
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key
from strandline.records.batch import decode
from strandline.records.header import read_header

REMEMBERED_MAX = 2_000
"""Batches, of this history and those before."""
OFFSETS_BACK = 100
"""So far it is looked for at first."""


class AcknowledgedIsLogged(GroupJudge):
    def answered(self, observed: GroupObservation, exchange: CoordinatorExchange) -> None:
        if exchange.api_key != OFFSET_COMMIT:
            return
        asked = {key: partition.committed_offset for key, partition in observed.keys_of(exchange.request.topics)}
        answered = observed.keys_of(exchange.response.topics)
        wanted = {(key, asked[key]) for key, each in answered if each.error_code == ErrorCode.NONE and key in asked}
        # The log names topics, not ids: of one that is deleted by now it can't be said which records are its own.
        there = {topic.topic_id for topic in observed.replicas.image.topics.values()}
        wanted = {each for each in wanted if each[0][0] in there}
        log_key = observed.offsets_key
        replica = None if log_key is None else observed.replicas.replicas.get((exchange.broker_id, log_key))
        if (
            log_key is None
            or replica is None
            or not replica.leads
            or observed.replicas.is_rotten(exchange.broker_id, log_key)
        ):
            return  # the answer was decided before it was deposed
        end = replica.high_watermark
        for start in (max(0, end - OFFSETS_BACK), 0):
            wanted -= committed_in(observed, exchange.broker_id, start, end)
            if not wanted:
                return
        for key, offset in sorted(wanted):
            raise Violation(f"acknowledges {offset} of {observed.name(key)}, which is not in its log below {end}")


def committed_in(observed: GroupObservation, broker_id: int, offset: int, limit_offset: int) -> set[tuple[Key, int]]:
    """The group's offsets that stand in a part of a coordinator's log."""
    log_key = observed.offsets_key
    found: set[tuple[Key, int]] = set()
    if log_key is not None:
        for batch in observed.replicas.batches(broker_id, log_key, offset, limit_offset):
            found |= _committed(observed, batch)
    return found


def _committed(observed: GroupObservation, batch: LoggedBatch) -> set[tuple[Key, int]]:
    """The offsets of the group that stand in a batch."""
    topics = observed.replicas.image.topics
    return {
        ((topics[topic].topic_id, partition), offset)
        for group, topic, partition, offset in _offsets(batch)
        if group == observed.group_id and topic in topics
    }


@lru_cache(maxsize=REMEMBERED_MAX)
def _offsets(batch: LoggedBatch) -> list[tuple[str, str, int, int]]:
    """Group, topic, partition and offset of each commit in a batch."""
    found: list[tuple[str, str, int, int]] = []
    if read_header(batch.content).is_control:
        return found
    for record in decode(batch.content, check_crc=False):
        if record.value is None or record.key is None:
            continue
        read = framing.decode(record.key, record.value)
        if read is not None and isinstance(read.key, OffsetCommitKey):
            found.append((read.key.group, read.key.topic, read.key.partition, read.value.offset))  # type: ignore[union-attr]
    return found
