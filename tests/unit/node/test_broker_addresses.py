"""Brokers are reached at their inter-broker listener, as the metadata says."""

from __future__ import annotations

from strandline.config.dynamic import DynamicConfig
from strandline.ids import Uuid
from strandline.metadata.image import BrokerImage, Endpoint, MetadataImage
from strandline.node.broker_addresses import BrokerAddresses
from strandline.raft.messages import Address

from .scripted import config_of


def addresses(*endpoints: Endpoint) -> BrokerAddresses:
    broker = BrokerImage(2, 20, Uuid(bytes(16)), endpoints, fenced=False)
    return BrokerAddresses(DynamicConfig(config_of()), lambda: MetadataImage(brokers={2: broker}))


def test_a_broker_is_at_its_inter_broker_listener() -> None:
    found = addresses(Endpoint("OTHER", "elsewhere", 1, 0), Endpoint("PLAINTEXT", "b2", 9092, 0))
    assert found.of(2) == Address("b2", 9092)


def test_one_without_it_or_without_registration_is_nowhere() -> None:
    found = addresses(Endpoint("OTHER", "elsewhere", 1, 0))
    assert found.of(2) is None
    assert found.of(9) is None
