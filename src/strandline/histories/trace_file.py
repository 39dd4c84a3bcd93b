"""One history as JSON lines: what a person reads, and between it each delivery, timer and disk write with a digest of
its bytes.

Always true: lines are in the order of their virtual times; two runs of a seed write the same file, so the first line
that differs is where they part.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterator
from typing import NamedTuple, TextIO

from strandline.histories.outcome import HistoryOutcome
from strandline.histories.reporting import events

JsonLine = dict[str, float | int | str | bool | list[str]]
DIGEST_BYTES = 8
PROCESS, CONNECTION, PORT, DISK, FILE = "process", "connection", "port", "disk", "file"
MILLISECONDS, NANOSECONDS_PER_S = "ms", "ns/s"

KINDS = {
    b"time": ("timer", PROCESS),
    b"turn": ("turn", PROCESS),
    b"conn": ("connect", PORT),
    b"refu": ("refused", PORT),
    b"recv": ("delivery", CONNECTION),
    b"FIN": ("end of stream", CONNECTION),
    b"RST": ("reset", CONNECTION),
    b"writ": ("write", FILE),
    b"trun": ("truncate", FILE),
    b"sync": ("sync", FILE),
    b"nsyn": ("failed sync", FILE),
    b"crea": ("create file", DISK),
    b"file": ("whole file", DISK),
    b"move": ("rename", DISK),
    b"rmov": ("remove", DISK),
    b"rmtr": ("remove tree", DISK),
    b"mkdr": ("make directory", DISK),
    b"sdir": ("sync directory", DISK),
    b"flip": ("bit flip", DISK),
    b"powr": ("power loss", DISK),
    b"kept": ("kept at power loss", DISK),
    b"gone": ("disk lost", DISK),
    b"jump": ("clock jump", MILLISECONDS),
    b"drif": ("clock drift", NANOSECONDS_PER_S),
}
"""What the letters of the trace mean, and what its number is of. Others are written as they are."""


class TraceEntry(NamedTuple):
    """As `Trace.watch` saw it, without the bytes."""

    at: float
    kind: bytes
    who: int
    size: int
    digest: str

    def as_json(self) -> JsonLine:
        kind, owner = KINDS.get(self.kind, (self.kind.decode("ascii", "replace").strip(), ""))
        return {
            "at": self.at,
            "who": _name(owner, self.who),
            "kind": kind,
            "bytes": self.size,
            "digest": self.digest,
        }


def _name(owner: str, number: int) -> str:
    if owner == FILE:
        return f"disk {number >> 32} file {number & 0xFFFFFFFF}"
    if owner in (MILLISECONDS, NANOSECONDS_PER_S):
        return f"{number} {owner}"
    return f"{owner} {number}".strip()


class TraceFile:
    """Give `watch` to `play`, then the outcome to `write`."""

    def __init__(self) -> None:
        self._entries: list[TraceEntry] = []

    def watch(self, kind: bytes, now: float, who: int, data: bytes) -> None:
        digest = hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest() if data else ""
        self._entries.append(TraceEntry(now, kind, who, len(data), digest))

    def write(self, outcome: HistoryOutcome, file: TextIO) -> int:
        """How many lines there are."""
        count = 0
        for event in self._events(outcome):
            file.write(json.dumps(event, ensure_ascii=False) + "\n")
            count += 1
        return count

    def _events(self, outcome: HistoryOutcome) -> Iterator[JsonLine]:
        yield from opening(outcome)
        yield from heapq.merge(
            (entry.as_json() for entry in self._entries), reported_events(outcome), key=lambda event: event["at"]
        )
        yield from closing(outcome)


def opening(outcome: HistoryOutcome) -> Iterator[JsonLine]:
    yield {"at": 0.0, "kind": "history", "seed": outcome.seed, "setting": outcome.setting, "acts": outcome.nemeses}


def reported_events(outcome: HistoryOutcome) -> Iterator[JsonLine]:
    """The same lines that a person reads."""
    for event in events(outcome):
        yield {"at": event.at, "who": event.who, "kind": event.kind, "what": event.what}


def closing(outcome: HistoryOutcome) -> Iterator[JsonLine]:
    yield {
        "at": outcome.virtual_s,
        "kind": "end",
        "failed": bool(outcome.problems),
        "virtual_s": outcome.virtual_s,
        "faults": len(outcome.faults),
        "operations": outcome.operations,
        "acknowledged": outcome.acknowledged,
        "trace_hash": outcome.trace_hash,
    }
