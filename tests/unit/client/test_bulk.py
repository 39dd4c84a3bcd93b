"""Ranges of raw batches from brokers in threads: in place, ahead of the caller, through restarts and elections."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import trustme

from strandline.client.aio import AsyncClient
from strandline.client.blocking import Client, ClientConfig
from strandline.client.bulk import FetchedBytes, OffsetOutOfRange, PartitionFetcher, TopicRecreated
from strandline.client.config import ConsumerConfig
from strandline.client.core.backoff import Backoff
from strandline.client.errors import ConnectionLost, TimedOut
from strandline.client.flow.range_fetch import RangeFetcher
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.records.batch import BatchBuilder
from strandline.sim.world import World
from strandline.wire import messages

from .core.broker import TOPIC_ID, metadata
from .server import Broker, running_beside, serve, serving_beside

QUICK = ClientConfig(retry_backoff=Backoff(1, 5), reconnect_backoff=Backoff(1, 5))


def batch(base_offset: int, count: int, value: bytes) -> bytes:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(None, value, (), 7)
    return bytes(builder.build(base_offset=base_offset, leader_epoch=0))


class LogBroker(Broker):
    """A log of batches. `failures` are answered first, one after the other; None closes the connection."""

    def __init__(self, count: int = 40, value_bytes: int = 20_000, **options: Any) -> None:
        super().__init__(**options)
        chance = random.Random(1)
        self.batches = [(10 * i, batch(10 * i, 10, chance.randbytes(value_bytes))) for i in range(count)]
        self.end = 10 * count
        self.fetches: list[Any] = []
        self.failures: list[ErrorCode | None] = []
        self.leader = (1, 0)
        self.nodes = {1: self}
        self.topic_id = TOPIC_ID
        self.goes_on = threading.Event()
        """Whether what follows the first piece is answered."""
        self.goes_on.set()

    def metadata(self, _: Any) -> Any:
        answer = metadata({0: self.leader}, nodes=tuple(self.nodes), topic_id=self.topic_id)
        for broker in answer.brokers:
            broker.host, broker.port = (
                "127.0.0.1" if self.host != "broker" else "broker",
                self.nodes[broker.node_id].port,
            )
        return answer

    def offsets(self, request: Any) -> Any:
        R = messages.response(2)
        ((asked,),) = [topic.partitions for topic in request.topics]
        answer = R.ListOffsetsPartitionResponse(partition_index=0, offset=0 if asked.timestamp == -2 else self.end)
        return R(topics=[R.ListOffsetsTopicResponse(name="t", partitions=[answer])])

    def fetch(self, request: Any) -> Any:
        R = messages.response(1)
        ((asked,),) = [topic.partitions for topic in request.topics]
        self.fetches.append(asked)
        if asked.fetch_offset > 0:
            self.goes_on.wait()
        code = ErrorCode.NONE
        if self.failures:
            failure = self.failures.pop(0)
            if failure is None:
                return None
            code = failure
        elif request.topics[0].topic_id != self.topic_id:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif asked.fetch_offset > self.end:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        elif self.nodes[self.leader[0]] is not self:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        records = b""
        if code is ErrorCode.NONE:
            records = b"".join(data for base, data in self.batches if base + 10 > asked.fetch_offset)
            first = next((len(data) for base, data in self.batches if base + 10 > asked.fetch_offset), 0)
            records = records[: max(first, asked.partition_max_bytes)]
        answer = R.PartitionData(
            partition_index=0,
            error_code=code,
            records=records,
            high_watermark=self.end,
            last_stable_offset=self.end,
            log_start_offset=0,
        )
        return R(responses=[R.FetchableTopicResponse(topic_id=request.topics[0].topic_id, partitions=[answer])])


def expected(broker: LogBroker, start: int, end: int) -> bytes:
    return b"".join(data for base, data in broker.batches if base + 10 > start and base < end)


@contextlib.contextmanager
def connected(broker: LogBroker) -> Iterator[Client]:
    with serving_beside(broker), Client(f"127.0.0.1:{broker.port}", config=QUICK) as client:
        yield client


@pytest.mark.parametrize("value_bytes", [10, 20_000])
@pytest.mark.parametrize("fetch_bytes", [1_000, 600_000, 1 << 23])
def test_a_range_comes_whole_in_pieces_of_any_size(value_bytes: int, fetch_bytes: int):
    broker = LogBroker(value_bytes=value_bytes)
    with connected(broker) as client:
        config = ConsumerConfig(max_partition_fetch_bytes=fetch_bytes)
        pieces = [
            (piece.offset, bytes(piece.data), piece.next_offset)
            for piece in PartitionFetcher(client, "t", 0, 15, 378, config, topic_id=TOPIC_ID)
        ]
        assert b"".join(data for _, data, _ in pieces) == expected(broker, 15, 378)
        assert [offset for offset, _, _ in pieces] == [15, *(following for _, _, following in pieces[:-1])]
        assert pieces[-1][2] == 380


def test_the_next_fetch_is_at_the_broker_while_the_caller_works():
    broker = LogBroker()
    with connected(broker) as client:
        pieces = iter(PartitionFetcher(client, "t", 0, 0, 400, ConsumerConfig(max_partition_fetch_bytes=500_000)))
        first = next(pieces)
        while len(broker.fetches) < 2:
            pass
        assert broker.fetches[1].fetch_offset == first.next_offset


def test_a_piece_that_is_kept_stays_as_it_was():
    broker = LogBroker()
    with connected(broker) as client:
        kept = list(PartitionFetcher(client, "t", 0, 0, 400, ConsumerConfig(max_partition_fetch_bytes=500_000)))
        assert len(kept) > 5
        assert b"".join(piece.data for piece in kept) == expected(broker, 0, 400)


def test_a_reader_of_one_piece_at_a_time_needs_the_memory_of_two():
    broker = LogBroker(count=100)
    with connected(broker) as client:
        config = ConsumerConfig(max_partition_fetch_bytes=500_000)
        places = [id(piece.data.obj) for piece in PartitionFetcher(client, "t", 0, 0, 1_000, config)]
        assert len(places) > 20
        assert len(set(places)) <= 3, "two, and that of the first, which was of another size"


def test_connections_serve_one_range_after_the_other():
    broker = LogBroker(count=4)
    with connected(broker) as client:
        for _ in range(3):
            assert len(list(PartitionFetcher(client, "t", 0, 0, 40))) >= 1
        assert broker.connections == 2, "one for metadata, one for ranges"


def test_a_range_that_is_given_up_leaves_nothing_behind_for_the_next():
    broker = LogBroker()
    with connected(broker) as client:
        config = ConsumerConfig(max_partition_fetch_bytes=500_000)
        for _ in range(3):
            for piece in PartitionFetcher(client, "t", 0, 0, 400, config):
                assert piece.offset == 0
                break
        assert b"".join(bytes(p.data) for p in PartitionFetcher(client, "t", 0, 0, 400)) == expected(broker, 0, 400)
        assert broker.connections == 1 + 4, "what was still to come went with its connection"


def test_a_wait_that_is_broken_off_leaves_no_answer_on_a_lane_for_the_next():
    broker = LogBroker()
    with connected(broker) as client:
        config = ConsumerConfig(max_partition_fetch_bytes=500_000)
        fetcher = RangeFetcher(client.flow, "t", 0, 0, 400, config)
        broker.goes_on.clear()
        first = client.scheduler.run(fetcher.next())
        assert first is not None
        got = bytes(first.data)
        with pytest.raises(TimedOut):
            client.scheduler.run(fetcher.next(), timeout_s=0.01)
        assert all(channel.in_flight_count == 0 for channel in client.flow._channels.values())
        broker.goes_on.set()
        while (piece := client.scheduler.run(fetcher.next())) is not None:
            got += piece.data
        assert got == expected(broker, 0, 400)
        fetcher.close()
        assert b"".join(piece.data for piece in PartitionFetcher(client, "t", 0, 0, 400, config)) == got


def test_a_caller_who_was_away_for_longer_than_a_request_may_take_finds_the_answer():
    broker = LogBroker()
    broker.goes_on.clear()
    with connected(broker) as client:
        scheduler, away_s = client.scheduler, 0.0
        scheduler.now = lambda: time.monotonic() + away_s  # type: ignore[method-assign]
        pieces = iter(PartitionFetcher(client, "t", 0, 0, 400, ConsumerConfig(max_partition_fetch_bytes=900_000)))
        next(pieces)
        away_s = 1_000.0
        scheduler.call_later(0, broker.goes_on.set)
        list(pieces)
        offsets = [asked.fetch_offset for asked in broker.fetches]
        assert offsets == sorted(set(offsets)), "nothing was asked for twice"


def test_two_ranges_beside_each_other_do_not_disturb_each_other():
    broker = LogBroker()
    with connected(broker) as client:
        config = ConsumerConfig(max_partition_fetch_bytes=500_000)
        one, two = (PartitionFetcher(client, "t", 0, start, start + 200, config) for start in (0, 200))
        got: list[list[FetchedBytes]] = [[], []]
        for pair in zip(one, two, strict=False):
            for mine, piece in zip(got, pair, strict=True):
                mine.append(piece)
        assert got[0][1].offset == got[0][0].next_offset
        assert got[1][1].offset == got[1][0].next_offset >= 210


@pytest.mark.parametrize(
    "failure",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        None,
    ],
)
def test_trouble_in_the_middle_costs_nothing_but_time(failure: ErrorCode | None):
    broker = LogBroker()
    with connected(broker) as client:
        got = b""
        for number, piece in enumerate(
            PartitionFetcher(client, "t", 0, 0, 400, ConsumerConfig(max_partition_fetch_bytes=900_000))
        ):
            got += piece.data
            if number == 1:
                broker.failures = [failure] * 3
        assert got == expected(broker, 0, 400)


def test_another_leader_goes_on_where_the_first_was():
    one, two = LogBroker(), LogBroker()
    one.nodes = two.nodes = {1: one, 2: two}
    two.open_connections = one.open_connections
    loop = asyncio.new_event_loop()
    servers = [loop.run_until_complete(serve(broker)) for broker in (one, two)]
    with running_beside(one, loop, servers), Client(f"127.0.0.1:{one.port}", config=QUICK) as client:
        got = b""
        for piece in PartitionFetcher(client, "t", 0, 0, 400, ConsumerConfig(max_partition_fetch_bytes=900_000)):
            got += piece.data
            one.leader = two.leader = (2, 1)
        assert got == expected(one, 0, 400)
        assert two.fetches[0].fetch_offset > 0


def test_a_broker_that_comes_back_at_the_same_port_is_found_again():
    broker = LogBroker()
    with serving_beside(broker):
        client = Client(f"127.0.0.1:{broker.port}", config=QUICK)
        pieces = iter(PartitionFetcher(client, "t", 0, 0, 400, ConsumerConfig(max_partition_fetch_bytes=900_000)))
        got = bytes(next(pieces).data)
    with serving_beside(broker):
        got += b"".join(bytes(piece.data) for piece in pieces)
    client.close()
    assert got == expected(broker, 0, 400)


async def to_the_end(fetcher: RangeFetcher) -> None:
    while await fetcher.next() is not None:
        pass


def test_nobody_there_is_said_with_partition_offset_and_address_when_time_is_over():
    broker = LogBroker(value_bytes=300, host="broker", port=9092)
    with World(1) as world:
        server, node = world.node("broker"), world.node("client")

        async def fetch() -> tuple[str, float]:
            async with AsyncClient("broker:9092", clock=node.clock, randomness=node.randomness) as client:
                config = ConsumerConfig(max_partition_fetch_bytes=6_000)
                fetcher = RangeFetcher(client, "t", 0, 0, 400, config, timeout_s=100)
                piece = await fetcher.next()
                assert piece is not None
                server.pause()
                began = client.io.now()
                with pytest.raises(TimedOut, match=r"nothing came for 100 s; .*broker:9092") as caught:
                    await to_the_end(fetcher)
                assert "fetching t-0 from offset" in str(caught.value)
                return str(caught.value), client.io.now() - began

        async def story() -> tuple[str, float]:
            await server.spawn(serve(broker))
            return await node.spawn(fetch())

        text, took_s = world.run(story(), until=600)
        offset = int(text.split("offset ")[1].split(":")[0])
        assert 0 < offset < 400
        assert 100 <= took_s < 140, "and at most one request's time more"


def test_an_offset_beyond_the_log_is_said_with_its_bounds():
    broker = LogBroker()
    with connected(broker) as client:
        with pytest.raises(OffsetOutOfRange, match="t-0 has no offset 500: its log goes from 0 to 400") as caught:
            list(PartitionFetcher(client, "t", 0, 500, 600))
        assert (caught.value.log_start_offset, caught.value.log_end_offset) == (0, 400)


def test_an_offset_that_only_one_leader_does_not_have_is_asked_of_the_next():
    broker = LogBroker()
    with connected(broker) as client:
        got = b""
        for piece in PartitionFetcher(client, "t", 0, 0, 400, ConsumerConfig(max_partition_fetch_bytes=900_000)):
            if not got:  # the second answer may be on its way already
                broker.failures = [ErrorCode.OFFSET_OUT_OF_RANGE]
            got += piece.data
        assert not broker.failures
        assert got == expected(broker, 0, 400)


def test_a_topic_that_is_made_again_is_refused_by_name():
    broker = LogBroker()
    with connected(broker) as client:
        pieces = iter(PartitionFetcher(client, "t", 0, 0, 400, ConsumerConfig(max_partition_fetch_bytes=900_000)))
        next(pieces)
        broker.topic_id = Uuid(b"another-topic-id")
        with pytest.raises(TopicRecreated, match="topic 't' was deleted and made again"):
            list(pieces)
        with pytest.raises(TopicRecreated):
            list(PartitionFetcher(client, "t", 0, 0, 400, topic_id=TOPIC_ID))


def test_a_partition_that_does_not_exist_is_said_by_name():
    broker = LogBroker()
    with connected(broker) as client, pytest.raises(KafkaError, match="topic 't' has 1 partitions, no 3"):
        list(PartitionFetcher(client, "t", 3, 0, 400))


def test_a_request_whose_time_began_anew_is_waited_for_longer():
    broker = LogBroker(value_bytes=300, host="broker", port=9092)
    with World(1) as world:
        server, node = world.node("broker"), world.node("client")

        async def ask(is_anew: bool) -> str | None:
            async with AsyncClient("broker:9092", clock=node.clock, randomness=node.randomness) as client:
                channel = await client.any_channel()
                server.pause()
                future = channel.send(3, messages.request(3)(topics=[]), 10.0)
                await asyncio.sleep(9)
                if is_anew:
                    channel.wait_anew(10.0)
                client.io.call_later(5, server.resume)
                answer = await future
                return str(answer.cluster_id)

        async def story() -> str | None:
            await server.spawn(serve(broker))
            with pytest.raises(ConnectionLost, match="did not answer in time"):
                await node.spawn(ask(False))
            await asyncio.sleep(10)
            return await node.spawn(ask(True))

        assert world.run(story(), until=600) == "c"


def test_over_tls_as_well():
    authority = trustme.CA()
    server, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(trusting)
    broker = LogBroker()
    with serving_beside(broker, server), Client(f"127.0.0.1:{broker.port}", config=QUICK, tls=trusting) as client:
        got = b"".join(bytes(piece.data) for piece in PartitionFetcher(client, "t", 0, 0, 400))
        assert got == expected(broker, 0, 400)


def test_a_broker_that_falls_silent_is_waited_for_and_asked_again():
    broker = LogBroker(value_bytes=300, host="broker", port=9092)
    with World(1) as world:
        server, node = world.node("broker"), world.node("client")

        async def fetch() -> tuple[bytes, float]:
            async with AsyncClient("broker:9092", clock=node.clock, randomness=node.randomness) as client:
                fetcher = RangeFetcher(client, "t", 0, 0, 400, ConsumerConfig(max_partition_fetch_bytes=6_000))
                got, began = b"", client.io.now()
                while (piece := await fetcher.next()) is not None:
                    if not got:
                        server.pause()
                        client.io.call_later(70, server.resume)
                    got += piece.data
                fetcher.close()
                return got, client.io.now() - began

        async def story() -> tuple[bytes, float]:
            await server.spawn(serve(broker))
            return await node.spawn(fetch())

        got, took_s = world.run(story(), until=600)
        assert got == expected(broker, 0, 400)
        assert 70 <= took_s < 80


@pytest.mark.parametrize("seed", range(6))
def test_on_asyncio_connections_may_break_at_any_byte(seed: int):
    broker = LogBroker(value_bytes=300, host="broker", port=9092)
    with World(seed) as world:
        server, node = world.node("broker"), world.node("client")

        async def fetch() -> bytes:
            async with AsyncClient("broker:9092", clock=node.clock, randomness=node.randomness) as client:
                config = ConsumerConfig(max_partition_fetch_bytes=6_000)
                fetcher = RangeFetcher(client, "t", 0, 5, 395, config)
                got = b""
                while (piece := await fetcher.next()) is not None:
                    got += piece.data
                    await asyncio.sleep(node.randomness.random() * 0.1)
                fetcher.close()
                return got

        async def break_connections() -> None:
            chance = random.Random(seed)
            for _ in range(8):
                await asyncio.sleep(chance.random() * 0.3)
                world.network.reset_connections("client", "broker")

        async def story() -> bytes:
            await server.spawn(serve(broker))
            breaking = asyncio.ensure_future(break_connections())
            got = await node.spawn(fetch())
            await breaking
            return got

        assert world.run(story(), until=600) == expected(broker, 5, 395)
