"""Where others find this node: its advertised listeners.

Always true: a port that the system chose is known from the moment in which the listener is bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.config.listeners import ListenerConfig
from strandline.metadata.image import Endpoint

SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class OwnEndpoints:
    def __init__(self, listeners: Sequence[ListenerConfig]) -> None:
        self._listeners = listeners
        self._ports: dict[str, int] = {}

    def bound(self, listener: str, port: int) -> None:
        """This listener has its port."""
        self._ports[listener] = port

    def of_brokers(self) -> list[Endpoint]:
        """For clients and other brokers."""
        return self._endpoints(is_controller=False)

    def of_controllers(self) -> list[Endpoint]:
        return self._endpoints(is_controller=True)

    def _endpoints(self, *, is_controller: bool) -> list[Endpoint]:
        return [
            Endpoint(
                listener.name,
                listener.advertised_host,
                listener.advertised_port or self._ports.get(listener.name, listener.port),
                SECURITY_PROTOCOLS[listener.protocol],
            )
            for listener in self._listeners
            if listener.controller == is_controller
        ]
