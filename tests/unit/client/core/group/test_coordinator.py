"""Finding the coordinator: at once when it is news, then after short waits."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from strandline.client.core.cluster_metadata import BrokerMetadata, ClusterMetadata
from strandline.client.core.group.coordinator import CoordinatorLookup, brokers, question
from strandline.errors import ErrorCode, KafkaError
from strandline.wire import messages

from ..broker import cluster

if TYPE_CHECKING:
    from strandline.wire.stubs.find_coordinator import FindCoordinatorResponse

Response = messages.response(10)


def named(node_id: int, code: ErrorCode = ErrorCode.NONE) -> FindCoordinatorResponse:
    return Response(
        coordinators=[Response.Coordinator(key="g", node_id=node_id, host="host9", port=9, error_code=code)]
    )


def finding() -> tuple[CoordinatorLookup, ClusterMetadata]:
    return CoordinatorLookup("g", random.Random(1)), cluster({0: (1, 0)})


def test_who_it_is_is_learnt_with_its_address():
    coordinator, known = finding()
    coordinator.answered(named(9), known, 0.0)
    assert coordinator.node_id == 9
    assert known.brokers[9] == BrokerMetadata(9, "host9", 9)


def test_the_first_loss_is_asked_about_at_once_and_the_next_after_a_little_while():
    coordinator, known = finding()
    coordinator.answered(named(9), known, 0.0)
    coordinator.serves()
    coordinator.gone(9, 10.0)
    assert coordinator.node_id is None
    assert coordinator.retry_at <= 10.0
    coordinator.answered(named(9), known, 10.0)
    coordinator.gone(9, 10.0)
    assert 10.05 < coordinator.retry_at < 10.2


def test_waits_stay_short_however_often_it_fails():
    coordinator, _ = finding()
    for _ in range(20):
        coordinator.failed(100.0)
    assert coordinator.retry_at <= 100.2


def test_who_was_it_before_does_not_take_it_from_who_is_it_now():
    coordinator, known = finding()
    coordinator.answered(named(9), known, 0.0)
    coordinator.gone(8, 1.0)
    assert coordinator.node_id == 9


def test_none_yet_is_asked_again_and_what_cannot_be_helped_is_raised():
    coordinator, known = finding()
    coordinator.answered(named(-1, ErrorCode.COORDINATOR_NOT_AVAILABLE), known, 0.0)
    assert coordinator.node_id is None
    assert coordinator.retry_at > 0.0
    with pytest.raises(KafkaError, match="GROUP_AUTHORIZATION_FAILED"):
        coordinator.answered(named(-1, ErrorCode.GROUP_AUTHORIZATION_FAILED), known, 0.0)


@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_every_version_asks_and_answers(version):
    request = messages.decode_request(10, version, messages.encode_request(10, version, question(["g"])))
    assert (request.coordinator_keys or [request.key]) == ["g"]
    response: Any = named(9) if version >= 4 else Response(node_id=9, host="host9", port=9)
    read = messages.decode_response(10, version, messages.encode_response(10, version, response))
    assert brokers(read, ["g"]) == {"g": BrokerMetadata(9, "host9", 9)}
