"""What clients of a listener can reach, and what that makes of a partition's replicas."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.api.cluster.view import ClusterView
from strandline.ids import ZERO_UUID, Uuid
from strandline.metadata.image import MetadataImage, PartitionImage
from strandline.metadata.replay import replay

from ..conftest import LISTENER, dir_id, registration

UNASSIGNED, LOST, STRANGE = Uuid(bytes(15) + b"\1"), Uuid(bytes(15) + b"\2"), Uuid(b"s" * 16)


def brokers_of(*registrations):
    return replay(MetadataImage(), registrations, len(registrations), 1).brokers


def partition(*directories):
    return PartitionImage(
        replicas=(1, 2, 3), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0, directories=directories
    )


def test_brokers_by_listener_and_fence():
    brokers = brokers_of(registration(3), registration(2, fenced=True), registration(1), registration(4, listener="X"))
    view = ClusterView(brokers, LISTENER)
    assert [(broker.broker_id, endpoint.port) for broker, endpoint in view.nodes()] == [(1, 9091), (3, 9093)]
    assert [broker.broker_id for broker, _ in view.nodes(fenced=True)] == [1, 2, 3]
    assert [view.is_registered(broker_id) for broker_id in (4, 5)] == [True, False]


@pytest.mark.parametrize(
    ("directory", "online"),
    [(dir_id(3), True), (ZERO_UUID, True), (UNASSIGNED, True), (LOST, False), (STRANGE, False)],
)
def test_a_replica_is_offline_with_its_directory(directory, online):
    brokers = brokers_of(registration(1), registration(2, fenced=True), registration(3))
    offline = ClusterView(brokers, LISTENER).offline_replicas(partition(dir_id(1), dir_id(2), directory))
    assert offline == ([2] if online else [2, 3])


def test_brokers_that_know_no_directories_have_none_offline():
    brokers = {
        key: replace(broker, log_dirs=()) for key, broker in brokers_of(registration(1), registration(3)).items()
    }
    view = ClusterView(brokers, LISTENER)
    assert view.offline_replicas(partition(dir_id(1), dir_id(2), STRANGE)) == [2]
    assert view.offline_replicas(partition(dir_id(1), dir_id(2), LOST)) == [2, 3]
    assert view.offline_replicas(partition()) == [2], "an old partition record has no directories"
