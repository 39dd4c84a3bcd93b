from __future__ import annotations

import pytest

from strandline.coordinator.result import coordinator_error
from strandline.errors import ErrorCode


@pytest.mark.parametrize(
    ("code", "answered"),
    [
        (ErrorCode.NONE, ErrorCode.NONE),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_txn_tf6_what_is_wrong_with_the_log_is_answered_as_what_is_wrong_with_the_coordinator(
    code: ErrorCode, answered: ErrorCode
) -> None:
    assert coordinator_error(code) is answered
