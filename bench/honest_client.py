"""Clients that ask at a steady rate together, and how long they wait for their answers.

Always true: a request's time counts from when it was due, not from when it could be sent: a client that is held up by one slow
answer counts the wait of all that follow. An answer that does not come counts as an error, and the client connects again.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from bench.raw_peer import METADATA, RawPeer, all_topics, batch, fetch, produced

RATE_PER_S = 200.0
CONNECTIONS = 20
"""Each asks one request at a time."""
TIMEOUT_S = 10.0
TOPIC = "honest"
FETCH_EVERY, METADATA_EVERY = 4, 10
"""Of this many requests one is such; the others are Produce with acks=all."""


@dataclass(slots=True)
class Answers:
    waited_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def percentile_ms(self, share: float) -> float:
        ranked = sorted(self.waited_s)
        return ranked[min(int(len(ranked) * share), len(ranked) - 1)] * 1000 if ranked else float("inf")


def ask(port: int, seconds: float) -> Answers:
    """Ask for so long. The topic `TOPIC` has to be there."""
    answers = Answers()
    began = time.monotonic()
    threads = [
        threading.Thread(target=_ask_on_one, args=(answers, port, seconds, began, first), daemon=True)
        for first in range(CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def _ask_on_one(answers: Answers, port: int, seconds: float, began: float, first: int) -> None:
    """Every so manieth of all requests."""
    records = batch(b"v" * 100)
    peer: RawPeer | None = None
    for number in range(first, int(seconds * RATE_PER_S), CONNECTIONS):
        due = began + number / RATE_PER_S
        time.sleep(max(0.0, due - time.monotonic()))
        if time.monotonic() - began > seconds + TIMEOUT_S:
            answers.errors.append("too slow to ask for more")
            break
        try:
            peer = peer or RawPeer(port, timeout_s=TIMEOUT_S)
            _ask(peer, number, records)
        except (OSError, EOFError) as error:
            answers.errors.append(f"{type(error).__name__}: {error}")
            if peer is not None:
                peer.close()
            peer = None
        else:
            answers.waited_s.append(time.monotonic() - due)
    if peer is not None:
        peer.close()


def _ask(peer: RawPeer, number: int, records: bytes) -> None:
    if number % METADATA_EVERY == 1:
        peer.call(METADATA, 9, all_topics())
    elif number % FETCH_EVERY == 1:
        peer.call(1, 12, fetch(TOPIC, 0, max_bytes=10_000, max_wait_ms=0))
    elif code := produced(peer, TOPIC, records):
        raise OSError(f"error code {code}")
