"""E4: of a deleted group nothing is left in its coordinator's log: a tombstone stands for every key."""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.groups import framing
from strandline.histories.exchanges import DELETE_GROUPS, CoordinatorExchange
from strandline.histories.groups.observation import GroupJudge, GroupObservation
from strandline.histories.quorum_observation import Violation
from strandline.records.batch import decode
from strandline.records.header import read_header


class DeletedIsTombstoned(GroupJudge):
    def answered(self, observed: GroupObservation, exchange: CoordinatorExchange) -> None:
        log_key, broker_id = observed.offsets_key, exchange.broker_id
        if exchange.api_key != DELETE_GROUPS or log_key is None:
            return
        codes = [result.error_code for result in exchange.response.results if result.group_id == observed.group_id]
        replica = observed.replicas.replicas.get((broker_id, log_key))
        if codes != [ErrorCode.NONE] or replica is None or not replica.leads:
            return
        left: dict[bytes, str] = {}
        for batch in observed.replicas.batches(broker_id, log_key, 0, replica.log_end_offset):
            if read_header(batch.content).is_control:
                continue
            for record in decode(batch.content, check_crc=False):
                found = None if record.key is None else framing.decode(record.key, record.value)
                if found is None or record.key is None or _group_of(found.key) != observed.group_id:
                    continue
                if found.value is None:
                    left.pop(bytes(record.key), None)
                else:
                    left[bytes(record.key)] = type(found.key).__name__
        if left:
            raise Violation(f"has deleted {observed.group_id}, and its log still holds {sorted(left.values())}")


def _group_of(key: object) -> str | None:
    return getattr(key, "group", None) or getattr(key, "group_id", None)
