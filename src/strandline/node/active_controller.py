"""Where the active controller is, and requests that this node sends there in its own name.

Always true: the quorum alone says who leads it. If that is this node, the address is one where it listens indeed, because
its port may be the system's choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from strandline.api.requests.error_reply import contains_error
from strandline.config.dynamic import DynamicConfig
from strandline.errors import ErrorCode
from strandline.node.controller_channel import ControllerChannel
from strandline.node.own_endpoints import OwnEndpoints
from strandline.node.quorum.quorum import Quorum
from strandline.raft.messages import Address

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

R = TypeVar("R", bound="ApiResponse")


class ActiveController:
    def __init__(self, node_id: int, quorum: Quorum, endpoints: OwnEndpoints) -> None:
        self._node_id = node_id
        self._quorum = quorum
        self._endpoints = endpoints

    def locate(self) -> tuple[int, int, Address | None]:
        """The quorum's epoch, its leader's id, -1 if none is known, and where that listens for controllers."""
        epoch, leader_id = self._quorum.leader
        if leader_id == self._node_id:
            own = self._endpoints.of_controllers()[0]
            return epoch, leader_id, Address(own.host, own.port)
        return epoch, leader_id, self._quorum.leader_address()


class ControllerRequests:
    def __init__(self, channel: ControllerChannel, dynamic_config: DynamicConfig) -> None:
        self._channel = channel
        self._dynamic_config = dynamic_config

    async def ask(self, api_key: int, message: ApiRequest[R]) -> R:
        """The active controller's response, for as long as `request.timeout.ms` allows."""
        timeout_s = self._dynamic_config.current.request_timeout_ms / 1000
        return await self._channel.ask(api_key, message, timeout_s, retry=True, error_of=_not_controller)


def _not_controller(response: ApiResponse) -> int:
    """NOT_CONTROLLER if the response says that anywhere."""
    return ErrorCode.NOT_CONTROLLER if contains_error(response, ErrorCode.NOT_CONTROLLER) else ErrorCode.NONE
