# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="arg-type, type-arg"

from __future__ import annotations

import json
import queue
import threading
import time

import pytest

from strandline.cli.local import local_cluster
from strandline.cli.monitoring import timeline
from strandline.cli.monitoring.endpoints import MonitoringEndpoint

from .serving_nodes import serving_nodes
from .test_event_merging import event


def answers(node_id, *events, run="a"):
    """A node's /events: what comes after the number that it is asked for."""

    def page(query):
        since = int(query["since"])
        served = [one for one in events if one["sequence"] > since][:2]
        return {
            "node_id": node_id,
            "incarnation_id": run,
            "last": served[-1]["sequence"] if served else since,
            "events": served,
        }

    return {"/events": page}


FENCED = {"topic": None, "partition": None, "facts": {"broker": 1, "broker_epoch": 5}}
ELECTED = {"facts": {"from": 1, "to": 2, "leader_epoch": 6, "partition_epoch": 9}, "reason": "broker 1 was fenced"}


@pytest.fixture
def utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("utc")
def test_one_line_says_when_what_where_and_why(call, tmp_path):
    first = answers(1, event(1, 1000, "fenced", reason="broker 1: gone", **FENCED), event(2, 1002, **ELECTED))
    second = answers(
        2,
        event(1, 1001, **ELECTED),
        event(2, 1003, "truncated", reason="other records", facts={"offset": 5}),
        event(3, 1004, "isr shrunk", reason="slow", facts={"isr": [2], "leader_epoch": 6, "partition_epoch": 10}),
    )
    with serving_nodes(str(tmp_path), first, second, None):
        ran = call("timeline", "--dir", str(tmp_path))
        as_json = call("timeline", "--dir", str(tmp_path), "--json", "--topic", "t")
    assert [" ".join(line.split()) for line in ran.out.splitlines()] == [
        "1970-01-01 00:00:01.000 fenced broker 1: gone",
        "1970-01-01 00:00:01.001 leader elected t-0 1 → 2, epoch 6: broker 1 was fenced",
        "1970-01-01 00:00:01.003 truncated t-0 on node 2 other records",
        "1970-01-01 00:00:01.004 isr shrunk t-0 ISR 2, epoch 6: slow",
    ]
    assert ran.err.startswith("node 3 ")
    assert [json.loads(line)["kind"] for line in as_json.out.splitlines()] == [
        "fenced",
        "leader elected",
        "truncated",
        "isr shrunk",
    ]


def test_nothing_has_happened(call, tmp_path):
    with serving_nodes(str(tmp_path), answers(1)):
        ran = call("timeline", "--dir", str(tmp_path), "--since", "10m")
    assert (ran.code, ran.out) == (0, "")
    assert "no events" in ran.err


def test_what_is_older_is_left_out(call, tmp_path):
    now_ms = time.time_ns() // 1_000_000
    with serving_nodes(str(tmp_path), answers(1, event(1, now_ms - 3_600_000), event(2, now_ms - 1000, partition=1))):
        ran = call("timeline", "--dir", str(tmp_path), "--since", "10m", "--json")
    assert [json.loads(line)["sequence"] for line in ran.out.splitlines()] == [2]


@pytest.mark.parametrize("since", ["10", "m", "-1m", "1w"])
def test_what_is_no_duration_is_wrong_usage(call, since):
    assert call("timeline", "--since", since).code == 2


def test_a_node_that_was_started_again_is_followed_from_its_beginning(tmp_path):
    """The first run is at number 2 when the second one, with two events of its own, takes its place."""
    runs = [
        answers(1, event(1, 1000), event(2, 1001, partition=1)),
        answers(1, event(1, 2000, partition=2), event(2, 2001, partition=3), run="b"),
    ]
    asked = []

    def page(query):
        asked.append(query["since"])
        return runs[0 if len(asked) == 1 else 1]["/events"](query)

    new_events: queue.Queue = queue.Queue()
    with serving_nodes(str(tmp_path), {"/events": page}):
        node = local_cluster.require(str(tmp_path)).nodes[0]
        place = MonitoringEndpoint(1, local_cluster.HOST, node.metrics_port)
        is_over = threading.Event()
        threading.Thread(target=timeline._listen, args=(place, new_events, is_over), daemon=True).start()
        served = [one.partition for _ in range(2) for one in new_events.get(timeout=10)]
        is_over.set()
    assert served == [0, 1, 2, 3]
    assert asked[:3] == ["0", "2", "0"]
