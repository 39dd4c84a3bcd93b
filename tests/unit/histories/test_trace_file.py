from __future__ import annotations

import hashlib
import io
import json

from strandline.histories.outcome import Problem
from strandline.histories.trace_file import TraceFile
from tests.unit.histories.plays import holding, outcome


def lines(file: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.getvalue().splitlines()]


def test_what_is_told_and_what_is_delivered_in_one_order() -> None:
    trace, file = TraceFile(), io.StringIO()
    found = holding(1, watch=trace.watch, without=frozenset(range(3, 13)))
    assert trace.write(found, file) == 8
    written = lines(file)
    assert [line["kind"] for line in written] == [
        "history",
        "fault",
        "event",
        "delivery",
        "fault",
        "write",
        "event",
        "end",
    ]
    assert written[2] == {"at": 1.5, "who": "n1", "kind": "event", "what": "leader, epoch 2"}
    digest = hashlib.blake2b(b"bytes", digest_size=8).hexdigest()
    assert written[3] == {"at": 2.0, "who": "connection 7", "kind": "delivery", "bytes": 5, "digest": digest}
    assert written[5] == {"at": 3.0, "who": "disk 2 file 5", "kind": "write", "bytes": 0, "digest": ""}
    assert written[-1]["trace_hash"] == "0001"


def test_signals_that_have_no_name_are_told_as_they_are() -> None:
    trace, file = TraceFile(), io.StringIO()
    trace.watch(b"what", 1.0, 4, b"")
    trace.write(outcome(1, faults=0), file)
    assert lines(file)[1] == {"at": 1.0, "who": "4", "kind": "what", "bytes": 0, "digest": ""}


def test_a_failure_is_in_it() -> None:
    file = io.StringIO()
    TraceFile().write(outcome(1, Problem("I1", 9.0, "two leaders"), faults=0), file)
    *_, problem, end = lines(file)
    assert problem == {"at": 9.0, "who": "judge", "kind": "problem", "what": "VIOLATES I1: two leaders"}
    assert end["failed"] is True
