"""DescribeCluster: the brokers as a client of this listener reaches them."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import describe_cluster
from strandline.api.cluster.authorized_operations import CLUSTER_OPERATIONS
from strandline.errors import ErrorCode

from .conftest import CLUSTER_ID, registration


@pytest.mark.parametrize("version", describe_cluster.VERSIONS)
async def test_the_cluster(broker, version):
    broker.commit([registration(3, rack="r"), registration(2, fenced=True), registration(4, listener="INTERNAL")])
    reply = await broker.call(describe_cluster, version)
    assert (reply.cluster_id, reply.controller_id, reply.error_code, reply.error_message) == (CLUSTER_ID, 1, 0, None)
    assert [(b.broker_id, b.host, b.port, b.rack) for b in reply.brokers] == [
        (1, "host1", 9091, None),
        (3, "host3", 9093, "r"),
    ]
    assert reply.cluster_authorized_operations == -(1 << 31)


async def test_fenced_brokers_on_request(broker):
    broker.commit([registration(2, fenced=True)])
    reply = await broker.call(describe_cluster, 2, include_fenced_brokers=True)
    assert [(b.broker_id, b.is_fenced) for b in reply.brokers] == [(1, False), (2, True)]


async def test_operations_on_request(broker):
    reply = await broker.call(describe_cluster, 0, include_cluster_authorized_operations=True)
    assert reply.cluster_authorized_operations == CLUSTER_OPERATIONS


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE), (9, 115), (-1, 115)],
)
async def test_other_endpoints(broker, endpoint_type, error):
    reply = await broker.call(describe_cluster, 1, endpoint_type=endpoint_type)
    assert (reply.error_code, reply.brokers) == (error, [])
    assert reply.error_message


@pytest.mark.parametrize("version", describe_cluster.VERSIONS)
async def test_a_controller_says_that_it_is_one_and_which_option_it_belongs_in(broker, version):
    reply = await broker.call(describe_cluster, version, "CONTROLLER")
    error = ErrorCode.MISMATCHED_ENDPOINT_TYPE if version else ErrorCode.INVALID_REQUEST
    assert (reply.error_code, reply.brokers) == (error, [])
    assert reply.error_message == (
        "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER; "
        "bootstrap.controllers is the client's option for this address"
    )


async def test_a_broker_says_that_it_is_one(broker):
    reply = await broker.call(describe_cluster, 1, endpoint_type=2)
    assert reply.error_message.endswith("; bootstrap.servers is the client's option for this address")
