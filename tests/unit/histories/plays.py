"""Histories without a cluster, for tests of what plays them: functions of a module, so that another process can
import them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from strandline.histories.coverage import FAULT, QUORUM, Coverage
from strandline.histories.outcome import HistoryOutcome, InjectedFault, Problem, TranscriptLine

FAULTS = 12
GUILTY = frozenset({3, 8})
"""Both are needed for `failing` to fail."""
Watch = Callable[[bytes, float, int, bytes], None]


def outcome(
    seed: int, *problems: Problem, faults: int = FAULTS, without: frozenset[int] = frozenset()
) -> HistoryOutcome:
    injected = [InjectedFault(n, float(n), "power loss", f"n{n}") for n in range(1, faults + 1) if n not in without]
    return HistoryOutcome(
        seed,
        "3 combined nodes",
        ["leader killed", "split"],
        list(problems),
        f"{seed:04x}",
        60.0 + seed,
        500 + seed,
        400,
        injected,
        Coverage({(FAULT, "power loss"): len(injected), (QUORUM, "election"): 2}),
        [TranscriptLine(1.5, "n1", "leader, epoch 2"), TranscriptLine(7.5, "client1", "creates t")],
    )


def holding(seed: int, *, without: frozenset[int] = frozenset(), watch: Watch | None = None) -> HistoryOutcome:
    if watch is not None:
        watch(b"recv", 2.0, 7, b"bytes")
        watch(b"writ", 3.0, 2 << 32 | 5, b"")
    return outcome(seed, without=without)


def failing(seed: int, *, without: frozenset[int] = frozenset(), watch: Watch | None = None) -> HistoryOutcome:
    """Odd seeds fail if both guilty faults are there, at the later one; later faults do not come to happen."""
    if seed % 2 == 0 or without & GUILTY:
        return outcome(seed, without=without)
    return outcome(seed, Problem("I4", 8.0, "n2 lost offset 7"), faults=8, without=without)


def failing_in_any_case(seed: int, *, without: frozenset[int] = frozenset()) -> HistoryOutcome:
    return outcome(seed, Problem("I1", 8.0, "two leaders"), without=without)


def failing_elsewhere(seed: int, *, without: frozenset[int] = frozenset()) -> HistoryOutcome:
    """Once anything is left out it is another property that fails; without nothing it is I4."""
    return outcome(seed, Problem("I4" if 9 not in without else "I5", 8.0, ""), without=without, faults=8)


def crashing(seed: int, *, without: frozenset[int] = frozenset()) -> HistoryOutcome:
    if seed == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == 4:
        os._exit(7)
    return outcome(seed)


def raising(seed: int, *, without: frozenset[int] = frozenset()) -> HistoryOutcome:
    if seed == 2:
        raise ZeroDivisionError("of seed 2")
    return outcome(seed)


def hanging(seed: int, *, without: frozenset[int] = frozenset()) -> HistoryOutcome:
    while seed == 1:
        time.sleep(1)
    return outcome(seed)


def which_process(seed: int, *, without: frozenset[int] = frozenset()) -> HistoryOutcome:
    found = outcome(seed)
    found.setting = str(os.getpid())
    return found


def by_hash_seed(seed: int, *, without: frozenset[int] = frozenset()) -> HistoryOutcome:
    """Seed 5 does what the order of a set says."""
    found = outcome(seed)
    if seed == 5:
        found.trace_hash = os.environ["PYTHONHASHSEED"]
    return found


COUNTED: list[int] = []


def by_what_was_before(seed: int, *, without: frozenset[int] = frozenset()) -> HistoryOutcome:
    """What one history leaves behind changes the next."""
    COUNTED.append(seed)
    found = outcome(seed)
    found.trace_hash = str(len(COUNTED))
    return found


def interrupting(seed: int, *, without: frozenset[int] = frozenset()) -> HistoryOutcome:
    """Ctrl-C is pressed during seed 3, before it fails; each takes a moment."""
    if seed == 3:
        for process in (os.getppid(), os.getpid()):
            os.kill(process, signal.SIGINT)
        time.sleep(0.2)
        return failing(seed)
    return outcome(seed)
