"""A client of the controllers of a cluster: it talks to their listener, without a broker in between.

What a client of brokers learns from Metadata, this one learns from DescribeCluster: its nodes are the controllers, and
the active one among them is known. So the quorum can be asked and changed while no broker runs.

Always true: a request that changes something goes to the active controller, as far as that is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.client.core.addresses import show
from strandline.client.core.cluster_metadata import METADATA, NO_LEADER
from strandline.client.errors import ConnectionLost, MismatchedEndpoint
from strandline.client.flow.channel import Channel
from strandline.client.flow.client import FlowClient
from strandline.client.flow.retry import check
from strandline.errors import ErrorCode
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
    from strandline.wire.stubs.metadata import MetadataResponse

DESCRIBE_CLUSTER: Final = 60
BROKERS, CONTROLLERS = 1, 2
"""DescribeCluster's endpoint types."""


class ControllerClient(FlowClient):
    async def _ask_metadata(self, topics: list[str] | None, allow_auto_topic_creation: bool) -> MetadataResponse:
        """The controllers as Metadata would name brokers. There are no topics to be learnt here."""
        described = await self._ask_each()
        check(described.error_code, described.error_message)
        Metadata = messages.response(METADATA)
        nodes = [
            Metadata.MetadataResponseBroker(node_id=c.broker_id, host=c.host, port=c.port, rack=c.rack)
            for c in described.brokers
        ]
        return Metadata(brokers=nodes, cluster_id=described.cluster_id, controller_id=described.controller_id)

    async def _ask_each(self) -> DescribeClusterResponse:
        message = messages.request(DESCRIBE_CLUSTER)(endpoint_type=CONTROLLERS)
        for _ in range(len(self._channels)):
            channel = await self.any_channel()
            try:
                return await self._describe(channel, message)
            except ConnectionLost:
                continue
        return await self._describe(await self.any_channel(), message)

    async def _describe(self, channel: Channel, message: DescribeClusterRequest) -> DescribeClusterResponse:
        described = await channel.send(DESCRIBE_CLUSTER, message, self.config.request_timeout_ms / 1000)
        if described.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
            raise MismatchedEndpoint(show(channel.address), is_controller=False)
        return described


def endpoint_type(client: FlowClient) -> int:
    return CONTROLLERS if isinstance(client, ControllerClient) else BROKERS


def for_controller(client: FlowClient) -> int | None:
    """The node that a request to the active controller goes to; None is any, since every broker passes it on."""
    if not isinstance(client, ControllerClient) or client.cluster.controller_id == NO_LEADER:
        return None
    return client.cluster.controller_id
