"""The client without an event loop, against a broker in a thread."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.client.blocking import Admin, Client, ClientConfig, Consumer, ConsumerConfig, Producer, ProducerConfig
from strandline.client.errors import NoBrokerReachable, TimedOut

from .server import Broker, serving_beside


def test_records_go_there_and_come_back_through_lost_replies():
    broker = Broker(lose_replies=(2,))
    with serving_beside(broker), Client(f"127.0.0.1:{broker.port}") as client:
        with Producer(client, ProducerConfig(linger_ms=0, batch_size=1)) as producer:
            sent = [producer.send("t", b"%d" % i) for i in range(5)]
            assert [record.result(5.0).offset for record in sent] == list(range(5))
        assert broker.log.values == [b"0", b"1", b"2", b"3", b"4"]
        consumer = Consumer(client, ConsumerConfig(auto_offset_reset="earliest"))
        consumer.assign([("t", 0)])
        assert consumer.beginning_offsets([("t", 0)]) == {("t", 0): 0}
        assert [record.offset for record in consumer.poll(5.0)] == [0, 1, 2, 3, 4]
        assert consumer.position("t", 0) == 5
        assert consumer.poll(0.0) == []
        consumer.close()


def test_nobody_there_is_said_within_the_time():
    config = ClientConfig(default_api_timeout_ms=50)
    with Client("127.0.0.1:1", config=config) as client, pytest.raises(NoBrokerReachable, match=r"127\.0\.0\.1:1 "):
        Admin(client).list_topics()


def test_a_wait_that_is_too_long_leaves_the_client_usable():
    with Client("127.0.0.1:1") as client:
        producer = Producer(client)
        record = producer.send("t", b"v")
        for _ in range(2):
            with pytest.raises(TimedOut):
                record.result(0.02)
        producer.close(0.01)
        assert record.done
