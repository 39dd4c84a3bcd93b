"""What strangers do with single requests: the heaviest legal one of each API, again and again on one connection.

They are the very requests of tests/system/test_attacks_requests.py; the next one is sent when the last one was answered.

Always true: as in `bench/connection_attacks.py`, only loopback is attacked, and an attack ends with its block.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tests.system import heavy_requests
from tests.system.raw_client import TIMEOUT_S, RawClient

from bench.connection_attacks import Attack, Target

PAUSE_S = 0.01
"""Before it connects again."""
JOIN_S_MAX = TIMEOUT_S + 5.0


@contextmanager
def repeated(target: Target, names: Sequence[str]) -> Iterator[None]:
    """Each of the requests of these names, on a connection of its own. The attacker's process looks them up by itself."""
    heavy = [each for each in heavy_requests.ATTACKS if each.name in names]
    stop = threading.Event()

    def send(one: heavy_requests.Attack) -> None:
        body = one.body()
        while not stop.wait(PAUSE_S):
            with contextlib.suppress(OSError), contextlib.closing(RawClient(target.port, None)) as client:
                while not stop.is_set() and client.ask_bytes(one.api_key, one.version, body) is not None:
                    pass

    with ExitStack() as stack:
        for one in heavy:
            thread = threading.Thread(target=send, args=(one,), daemon=True)
            thread.start()
            stack.callback(thread.join, JOIN_S_MAX)
        stack.callback(stop.set)
        yield


NAMES = tuple(each.name for each in heavy_requests.ATTACKS)

ATTACKS = [
    *(Attack(name, "SEC-L2", functools.partial(repeated, names=(name,))) for name in NAMES),
    Attack("all of these at once", "SEC-L2, SEC-L4", functools.partial(repeated, names=NAMES)),
]
