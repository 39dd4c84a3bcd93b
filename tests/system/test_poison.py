"""What a producer must not get into a log, on a real node: batches that no consumer could read, and compression bombs.

Each attack is a raw request; whether it did harm, consumers of several makes say.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from strandline.errors import ErrorCode
from strandline.records.batch import BatchBuilder, join
from strandline.records.compression import CompressionType, compress
from strandline.records.header import read_header
from strandline.records.record import encode_record
from strandline.records.varint import encode_varint
from strandline.wire import messages
from strandline.wire.headers import read_response_header, request_header
from tests.system.clients import CLIENTS, Broker, Client
from tests.system.conftest import MakeTopic
from tests.system.server import eventually, format_data, running

PRODUCE, VERSION = 0, 9
TIMEOUT_S = 60.0
MEMORY_MB_MAX = 1024
Request = messages.request(PRODUCE)
CODECS = [codec for codec in CompressionType if codec != CompressionType.NONE]


class Raw:
    """A connection that sends what it is given."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)

    def send(self, topic: str, batch: bytes, correlation_id: int = 1) -> None:
        data = Request.PartitionProduceData(index=0, records=batch)
        message = Request(
            acks=-1,
            timeout_ms=int(TIMEOUT_S * 1000),
            topic_data=[Request.TopicProduceData(name=topic, partition_data=[data])],
        )
        frame = request_header(PRODUCE, VERSION, correlation_id, "raw") + messages.encode_request(
            PRODUCE, VERSION, message
        )
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def answer(self) -> Any:
        (size,) = struct.unpack(">i", self._exactly(4))
        reply = self._exactly(size)
        _, position = read_response_header(PRODUCE, VERSION, reply, 0)
        [topic] = messages.decode_response(PRODUCE, VERSION, reply, position).responses
        [answer] = topic.partition_responses
        return answer

    def produce(self, topic: str, batch: bytes) -> Any:
        self.send(topic, batch)
        return self.answer()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            assert part, "the node closed the connection"
            data += part
        return data

    def close(self) -> None:
        self._socket.close()


def claiming(payload: bytes, count: int = 1, codec: int = 0) -> bytes:
    """A sealed batch whose header claims so many records, whatever its payload is."""
    header = read_header(good(b"x"))._replace(records_count=count, last_offset_delta=count - 1, attributes=codec)
    return bytes(join(header, payload))


def good(*values: bytes, codec: CompressionType = CompressionType.NONE, **fields: Any) -> bytes:
    builder = BatchBuilder()
    for value in values:
        builder.append(b"k", value, timestamp=int(time.time() * 1000))
    return bytes(builder.build(codec=codec, **fields))


RECORD = encode_record(0, 0, b"k", b"v")
POISON: dict[str, Callable[[], bytes]] = {
    "count": lambda: claiming(RECORD, 1000),
    "garbage": lambda: claiming(b"\xff" * 50),
    "negative length": lambda: claiming(encode_varint(-5) + b"abc"),
    "huge length": lambda: claiming(encode_varint(2**30) + b"abc"),
    "headers": lambda: claiming(encode_varint(19) + b"\0\0\0\1\1" + encode_varint(2**31 - 1) + b"\0" * 9),
    "not zstd": lambda: claiming(b"not zstd at all", codec=CompressionType.ZSTD),
    "count, gzip": lambda: claiming(compress(CompressionType.GZIP, RECORD), 1000, CompressionType.GZIP),
    "gap": lambda: claiming(RECORD + encode_record(2, 0, b"k", b"v"), 2),
}


@pytest.fixture(scope="module")
def poisoned(broker: Broker, make_topic: MakeTopic) -> str:
    """A topic that was sent every kind of poison between two records."""
    topic = make_topic()
    raw = Raw(broker.bootstrap)
    assert raw.produce(topic, good(b"before")).base_offset == 0
    for name, make in POISON.items():
        answer = raw.produce(topic, make())
        assert (name, answer.error_code, answer.base_offset) == (name, ErrorCode.INVALID_RECORD, -1)
    assert raw.produce(topic, good(b"after")).base_offset == 1
    raw.close()
    return topic


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
async def test_no_consumer_is_stuck(broker: Broker, poisoned: str, client: Client) -> None:
    seen = await client.read(broker, poisoned)
    assert [(each.offset, each.record.value) for each in seen[0]] == [(0, b"before"), (1, b"after")]


@cache
def zeros() -> bytes:
    return encode_record(0, 0, b"k", bytes(240_000_000))


@cache
def bomb_of(codec: CompressionType) -> bytes:
    """240 MB in as many bytes as the codec needs: gzip's may pass, zstd's is too good to be true."""
    return claiming(compress(codec, zeros(), 19 if codec == CompressionType.ZSTD else None), codec=codec)


KINDS = {
    "plain": {},
    "compacted": {"cleanup_policy": "compact"},
    "own codec": {"compression_type": "zstd", "compression_zstd_level": "22"},
}


@pytest.mark.parametrize("configs", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_bounded_and_others_are_served_meanwhile(
    broker: Broker, make_topic: MakeTopic, codec: CompressionType, configs: dict[str, str]
) -> None:
    topic, other = make_topic(**configs, max_message_bytes="20000000"), make_topic()
    attack, honest = Raw(broker.bootstrap), Raw(broker.bootstrap)
    attack.send(topic, bomb_of(codec))
    assert honest.produce(other, good(b"v")).error_code == 0
    answer = attack.answer()
    if codec == CompressionType.ZSTD:
        assert answer.error_code == ErrorCode.INVALID_RECORD
    else:
        assert answer.error_code == 0
    assert broker.server is not None
    assert peak_mb(broker.server.process.pid) < MEMORY_MB_MAX
    assert "stood still" not in broker.server.log.read_text(errors="replace")
    attack.close()
    honest.close()


def peak_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("the process has no peak of memory")


def test_what_is_checked_beside_the_loop_keeps_its_place(broker: Broker, make_topic: MakeTopic) -> None:
    """An idempotent producer with several requests in flight, some of which take long to check: no sequence is missed."""
    topic = make_topic(compression_type="zstd")
    raw = Raw(broker.bootstrap)
    for sequence in range(12):
        value = bytes(3_000_000) if sequence % 3 == 0 else b"small"
        batch = good(value, codec=CompressionType.GZIP, producer_id=9_000_001, producer_epoch=0, base_sequence=sequence)
        raw.send(topic, batch, sequence)
    assert [(answer.error_code, answer.base_offset) for answer in (raw.answer() for _ in range(12))] == [
        (0, sequence) for sequence in range(12)
    ]
    raw.close()


def test_librdkafka_learns_which_record_was_refused(broker: Broker, make_topic: MakeTopic) -> None:
    """KIP-467: the records without a key are to blame, the others of their batch are not (librdkafka's test 0011)."""
    topic = make_topic(cleanup_policy="compact")
    producer = confluent_kafka.Producer(broker.confluent(linger_ms=500, retries=0))
    outcomes: dict[bytes, confluent_kafka.KafkaError | None] = {}

    def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        value = message.value()
        assert isinstance(value, bytes)
        outcomes[value] = error

    for value, key in ((b"a", b"k"), (b"b", None), (b"c", b"k"), (b"d", None)):
        producer.produce(topic, value, key, 0, on_delivery=delivered)
    producer.flush(TIMEOUT_S)
    codes = {value: error.code() if error else 0 for value, error in outcomes.items()}
    other = confluent_kafka.KafkaError._INVALID_DIFFERENT_RECORD
    assert codes == {b"a": other, b"b": ErrorCode.INVALID_RECORD, b"c": other, b"d": ErrorCode.INVALID_RECORD}


def test_a_node_has_its_walk_compiled_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    format_data(tmp_path / "data")
    for line, other in (("in machine code from now on", "in Python"), ("started", "machine code")):
        with running(tmp_path, tmp_path / "data") as server:
            eventually(lambda: line in server.log.read_text(), line, TIMEOUT_S)  # noqa: B023
            assert other not in server.log.read_text()
            mapped = Path(f"/proc/{server.process.pid}/maps").read_text()
            assert any("strandline-kernel" in row and "r-xp" in row for row in mapped.splitlines())
            assert "llvmlite" not in mapped
            server.stop()
        server.log.unlink()
