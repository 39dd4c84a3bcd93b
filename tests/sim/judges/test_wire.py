"""The wiretap reads what the judges ask about, as it leaves, however the bytes are cut."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from strandline.histories.wire import BROKER_HEARTBEAT, FETCH, QuorumMessage, Wiretap
from strandline.ids import ZERO_UUID
from strandline.sim.pipe import Pipe
from strandline.wire import messages
from strandline.wire.headers import request_header

CONTROLLER_PORT = 9093


def pipe(port: int = CONTROLLER_PORT) -> Pipe:
    server = SimpleNamespace(get_extra_info=lambda name: ("n1", port))
    return cast(Pipe, SimpleNamespace(number=0, source="n2", target="n1", reader=server, writer=None))


def fetch(version: int, partitions: int = 1) -> bytes:
    Fetch = messages.request(FETCH)
    wanted: list[Any] = [
        Fetch.FetchPartition(
            partition=i, current_leader_epoch=7, fetch_offset=42, last_fetched_epoch=6, partition_max_bytes=1
        )
        for i in range(partitions)
    ]
    topic = Fetch.FetchTopic(topic="__cluster_metadata", topic_id=ZERO_UUID, partitions=wanted)
    message = Fetch(max_wait_ms=500, min_bytes=1, max_bytes=100, topics=[topic], cluster_id="c", rack_id="")
    frame = request_header(FETCH, version, 5, "n2") + messages.encode_request(FETCH, version, message)
    return len(frame).to_bytes(4, "big") + frame


@pytest.mark.parametrize("version", [12, 13, 17])
@pytest.mark.parametrize("cut", [0, 3, 20])
def test_a_fetch_is_seen_with_its_epochs_and_offset(version: int, cut: int) -> None:
    seen: list[QuorumMessage] = []
    tap, through = Wiretap({"n2": 2}, CONTROLLER_PORT, seen.append), pipe()
    data = fetch(version)
    tap(through, data[:cut])
    tap(through, data[cut:] + data)
    assert seen == [QuorumMessage(2, FETCH, 7, offset=42, last_fetched_epoch=6)] * 2


def test_a_fetch_that_is_not_flat_is_read_the_long_way() -> None:
    seen: list[QuorumMessage] = []
    Wiretap({"n2": 2}, CONTROLLER_PORT, seen.append)(pipe(), fetch(17, partitions=2))
    assert [sent.offset for sent in seen] == [42]


@pytest.mark.parametrize(("wants", "may"), [(False, False), (True, False), (True, True)])
def test_the_answer_to_a_broker_that_wants_to_stop_is_seen(wants: bool, may: bool) -> None:
    seen: list[QuorumMessage] = []
    tap = Wiretap({"n1": 1, "n2": 2}, CONTROLLER_PORT, seen.append)
    Heartbeat, Answer = messages.request(BROKER_HEARTBEAT), messages.response(BROKER_HEARTBEAT)
    request = Heartbeat(broker_id=7, broker_epoch=3, current_metadata_offset=9, want_shut_down=wants)
    frame = request_header(BROKER_HEARTBEAT, 1, 5, "n2") + messages.encode_request(BROKER_HEARTBEAT, 1, request)
    tap(pipe(), len(frame).to_bytes(4, "big") + frame)
    answer = (5).to_bytes(4, "big") + b"\0"
    answer += messages.encode_response(BROKER_HEARTBEAT, 1, Answer(is_caught_up=True, should_shut_down=may))
    server = SimpleNamespace(get_extra_info=lambda name: ("n1", CONTROLLER_PORT))
    back = cast(Pipe, SimpleNamespace(number=1, source="n1", target="n2", reader=None, writer=server))
    tap(back, len(answer).to_bytes(4, "big") + answer)
    asked = QuorumMessage(2, BROKER_HEARTBEAT, -1, candidate_id=7, offset=9, broker_epoch=3, wants_to_stop=wants)
    assert seen == [asked] * wants + [asked._replace(source=1, response=True, granted=may)]


def test_what_goes_to_others_or_comes_from_clients_is_passed_over() -> None:
    seen: list[QuorumMessage] = []
    Wiretap({"n2": 2}, CONTROLLER_PORT, seen.append)(pipe(9092), fetch(17))
    Wiretap({"n1": 1}, CONTROLLER_PORT, seen.append)(pipe(), fetch(17))
    assert not seen
