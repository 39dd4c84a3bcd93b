"""Election policy: min.insync.replicas and unclean elections of each topic by its configuration, and whether there is an ELR.

The election itself is in `leader_election.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from strandline.config.layers import Layers
from strandline.config.topic import TOPIC
from strandline.config.types import Value
from strandline.controller.leader_election import Election, Terms
from strandline.controller.topics import MIN_ISR
from strandline.ids import Uuid
from strandline.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from strandline.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    TOPIC_RESOURCE,
    MetadataImage,
)

UNCLEAN_ELECTION = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True)
class ElectionPolicy:
    """What the configuration says about elections."""

    default_min_isr: int = 1
    default_unclean: bool = False
    elr_enabled: bool = False
    configs: Mapping[tuple[int, str], Mapping[str, str]] = field(default_factory=dict)
    """Overrides, of which those of topics are looked at."""

    def min_isr(self, topic: str) -> int:
        text = self._override(topic, MIN_ISR)
        return self.default_min_isr if text is None else _number(TOPIC[MIN_ISR].parse(text))

    def unclean(self, topic: str) -> bool:
        text = self._override(topic, UNCLEAN_ELECTION)
        return self.default_unclean if text is None else bool(TOPIC[UNCLEAN_ELECTION].parse(text))

    def _override(self, topic: str, name: str) -> str | None:
        overrides = self.configs.get((TOPIC_RESOURCE, topic))
        return None if overrides is None else overrides.get(name)

    def terms(self, topic: str, active: Mapping[int, tuple[Uuid, ...]], election: Election | None = None) -> Terms:
        """What a change of the topic's partitions has to respect. Unless said otherwise, the topic says which election."""
        if election is None:
            election = Election.UNCLEAN if self.unclean(topic) else Election.ONLINE
        return Terms(active, self.min_isr(topic), self.elr_enabled, election)


def policy_of(image: MetadataImage, layers: Layers) -> ElectionPolicy:
    """The policy by this image, on top of a node's own layers. The cluster's dynamic defaults are the image's."""
    layers = Layers(layers.static, image.config(BROKER_RESOURCE, CLUSTER_DEFAULT), layers.dynamic_broker)
    return ElectionPolicy(
        default_min_isr=_number(layers.topic_default(TOPIC[MIN_ISR])),
        default_unclean=bool(layers.topic_default(TOPIC[UNCLEAN_ELECTION])),
        elr_enabled=image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0,
        configs=image.configs,
    )


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value
