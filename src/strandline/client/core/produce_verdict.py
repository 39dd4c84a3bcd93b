"""What an answer to Produce says about one batch.

Always true: `surely_not_appended` holds only for errors that a broker gives before it appends, so that such a batch may
be sent again under another sequence without ever being in the log twice.
"""

from __future__ import annotations

import enum

from strandline.errors import RETRIABLE, ErrorCode


class ProduceVerdict(enum.Enum):
    ACKNOWLEDGED = "it is in the log"
    RETRY = "send it again as it is"
    SEQUENCE = "the broker does not follow our sequences"
    SPLIT = "send it again in two parts"
    FAILED = "give it up"


_SEQUENCE = frozenset(
    {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH}
)
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})

_SURELY_NOT_APPENDED = (
    _SEQUENCE
    | _TOO_LARGE
    | {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
"""NOT_LEADER_OR_FOLLOWER is not among them:
a leader that steps down while it waits for its followers answers it too.
"""


def judge(code: ErrorCode, records_count: int) -> ProduceVerdict:
    if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        return ProduceVerdict.ACKNOWLEDGED
    if code in _SEQUENCE:
        return ProduceVerdict.SEQUENCE
    if code in _TOO_LARGE and records_count > 1:
        return ProduceVerdict.SPLIT
    return ProduceVerdict.RETRY if code in RETRIABLE else ProduceVerdict.FAILED


def surely_not_appended(code: ErrorCode) -> bool:
    return code in _SURELY_NOT_APPENDED
