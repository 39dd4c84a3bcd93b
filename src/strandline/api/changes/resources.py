"""Kafka's configuration resources: their types, and the layers of configuration that this broker stands on.

Always true: what is described is what the newest committed metadata says, whether or not this node has acted on it yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from strandline.api.context import NodeContext
from strandline.config.layers import Layers
from strandline.controller.topics import TopicDefaults
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
)

TOPIC, BROKER, GROUP = TOPIC_RESOURCE, BROKER_RESOURCE, GROUP_RESOURCE
BROKER_LOGGER, CLIENT_METRICS = 8, 16


def layers(node: NodeContext, image: MetadataImage) -> Layers:
    """The file's values, the cluster's dynamic ones and this broker's own."""
    return Layers(
        node.config.layers.static, image.config(BROKER, CLUSTER_DEFAULT), image.config(BROKER, str(node.node_id))
    )


def topic_defaults(node: NodeContext, image: MetadataImage) -> TopicDefaults:
    """What a topic gets when its creator does not say."""
    return TopicDefaults(node.config.num_partitions, node.config.default_replication_factor, layers(node, image))


def check_own_id(node: NodeContext, name: str) -> None:
    """A broker answers for itself only: INVALID_REQUEST if `name` is not its id."""
    try:
        broker_id = int(name)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name[:64]}") from None
    if broker_id != node.node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node.node_id}, but received {name[:64]}"
        )


def repeated(resources: Iterable[tuple[int, str]]) -> set[tuple[int, str]]:
    """Those that are named more than once."""
    return {resource for resource, count in Counter(resources).items() if count > 1}
