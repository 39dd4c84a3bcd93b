"""Requests of this broker to other brokers about transactions, over the inter-broker listener.

Always true: each kind of request has a connection of its own, so that a slow marker delays no verification.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from strandline.errors import ErrorCode, KafkaError
from strandline.node.peers import Peers
from strandline.raft.messages import Address

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

R = TypeVar("R", bound="ApiResponse")


class BrokerRequests:
    def __init__(
        self, peers: Peers, address_of: Callable[[int], Address | None], listener: Callable[[], str], purpose: str
    ) -> None:
        self._peers = peers
        self._address_of = address_of
        self._listener = listener
        self._purpose = purpose

    async def ask(self, broker_id: int, api_key: int, message: ApiRequest[R], timeout_s: float) -> R:
        """The response; KafkaError if there is none."""
        address = self._address_of(broker_id)
        if address is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not registered")
        peer = self._peers.connection(broker_id, address, self._purpose, listener=self._listener())
        return await peer.ask(api_key, message, timeout_s)
