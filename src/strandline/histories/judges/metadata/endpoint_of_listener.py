"""A5: a client is given the endpoints of the listener it asks: of brokers, of coordinators, and as a leader's hint
(KIP-951).

Looked for in the bytes of every answer of a broker: a host of the cluster, followed by the port of its other listener.
"""

from __future__ import annotations

import re

from strandline.histories.quorum_observation import QuorumJudge, QuorumObservation, Violation

PORTS = (9092, 9094)


class EndpointOfListener(QuorumJudge):
    def __init__(self) -> None:
        self._other = {
            port: re.compile(rb"n[0-9]" + re.escape(other.to_bytes(4, "big")))
            for port, other in zip(PORTS, reversed(PORTS), strict=True)
        }

    def answered(self, observed: QuorumObservation, node_id: int, port: int, frame: bytes) -> None:
        found = self._other[port].search(frame)
        if found is not None:
            raise Violation(f"names an endpoint of another listener on port {port}: {found[0]!r}")
