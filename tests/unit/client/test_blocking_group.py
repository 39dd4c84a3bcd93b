"""A member of a group without an event loop, against brokers in a thread: everything happens inside its calls."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="call-arg, union-attr"

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from strandline.client.blocking import Client, Consumer, ConsumerConfig

from .flow.group_broker import GroupCluster, serve_node
from .server import running_beside


@contextmanager
def serving_groups() -> Iterator[tuple[GroupCluster, str]]:
    cluster = GroupCluster()
    cluster.hosts = {1: ("127.0.0.1", 0), 2: ("127.0.0.1", 0)}
    loop = asyncio.new_event_loop()
    servers = [loop.run_until_complete(serve_node(cluster, node)) for node in cluster.hosts]
    with running_beside(cluster, loop, servers):
        yield cluster, f"127.0.0.1:{cluster.hosts[1][1]}"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_records_are_consumed_committed_and_gone_on_with(protocol):
    with serving_groups() as (cluster, bootstrap), Client(bootstrap) as client:
        config = ConsumerConfig(group_id="g", group_protocol=protocol, auto_offset_reset="earliest")
        first = Consumer(client, config)
        first.subscribe(["t"])
        assert [record.offset for record in first.poll(5.0, 4)] == [0, 1, 2, 3]
        assert first.assignment() == [("t", 0)]
        first.commit()
        assert first.committed([("t", 0)])[("t", 0)].offset == 4
        first.close()
        second = Consumer(client, config)
        second.subscribe(["t"])
        for record in second:
            if record.offset == 6:
                break
        second.close()
        assert cluster.committed == {0: 7}


def test_a_callback_may_use_the_consumer():
    with serving_groups() as (cluster, bootstrap), Client(bootstrap) as client:
        consumer = Consumer(
            client, ConsumerConfig(group_id="g", enable_auto_commit=False, auto_offset_reset="earliest")
        )
        seen = []

        def on_assigned(partitions):
            seen.append(consumer.position(*partitions[0]))
            consumer.seek(*partitions[0], 5)

        consumer.subscribe(["t"], on_assigned=on_assigned, on_revoked=lambda _: consumer.commit())
        assert [record.offset for record in consumer.poll(5.0, 2)] == [5, 6]
        assert seen == [0]
        consumer.close()
        assert cluster.committed == {0: 7}
