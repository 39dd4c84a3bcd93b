"""The end of a transaction as a batch of the log (TXN-P20).

Always true: it is one control record, uncompressed, 78 bytes long, and carries the epoch of the coordinator that decided.
"""

from __future__ import annotations

from strandline.records.batch import BatchBuilder
from strandline.records.control import ControlRecordType, control_key, end_txn_marker


def end_txn_batch(
    producer_id: int, producer_epoch: int, commit: bool, coordinator_epoch: int, timestamp: int
) -> bytearray:
    builder = BatchBuilder()
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    builder.append(control_key(kind), end_txn_marker(coordinator_epoch), timestamp=timestamp)
    return builder.build(producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True)
