"""Bad input to transactions over real connections: each row, with the error that it is to be answered with.

The node coordinates and leads everything; clients and brokers have a listener each. None of the rows changes anything, so they do
not disturb each other, and after all of them a transaction goes from its begin to its end.
"""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import asyncio
import pathlib
from typing import Any

import pytest

from strandline.errors import ErrorCode
from strandline.records.batch import BatchBuilder
from strandline.transactions.metadata import ProducerIdAndEpoch
from strandline.wire import messages
from strandline.wire.headers import read_response_header, request_header

from .stage import REPLY_TIMEOUT_S
from .transaction_stage import CLIENTS, LONGEST_BYTES, TransactionStage, errors

PRODUCE, FIND, INIT, ADD, ADD_OFFSETS, END, MARKERS, COMMIT, DESCRIBE, LIST = 0, 10, 22, 24, 25, 26, 27, 28, 65, 66
TOO_LONG = "t" * 100_000
UNKNOWN = "u" * LONGEST_BYTES
TID = "sound"
E = ErrorCode


class Line:
    """Connections to one listener: a new one after each that was closed."""

    def __init__(self, stage: TransactionStage, listener: str, producer: ProducerIdAndEpoch) -> None:
        self.producer = producer
        self._stage = stage
        self._listener = listener
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, api_key: int, version: int, message: Any) -> Any:
        """The reply; None if the connection was closed instead."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._stage.port(self._listener))
        reader, writer = self._streams
        request = request_header(api_key, version, 7, "refusals") + messages.encode_request(api_key, version, message)
        writer.write(len(request).to_bytes(4, "big") + request)
        try:
            async with asyncio.timeout(REPLY_TIMEOUT_S):
                size = int.from_bytes(await reader.readexactly(4), "big")
                reply = await reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.close()
            return None
        correlation_id, position = read_response_header(api_key, version, reply)
        assert correlation_id == 7
        return messages.decode_response(api_key, version, reply, position)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def pair(line: Line, said: dict[str, Any]) -> dict[str, Any]:
    producer = line.producer
    return {
        "producer_id": said.get("producer_id", producer.producer_id),
        "producer_epoch": said.get("epoch", producer.epoch),
    }


def find(line: Line, **said: Any) -> Any:
    key = said.get("tid", TID)
    return messages.request(FIND)(key=key, coordinator_keys=[key], key_type=said.get("type", 1))


def init(line: Line, **said: Any) -> Any:
    return messages.request(INIT)(
        transactional_id=said.get("tid", TID),
        transaction_timeout_ms=said.get("timeout_ms", 60_000),
        enable2_pc=said.get("enable2_pc", False),
        keep_prepared_txn=said.get("keep", False),
        **pair(line, said),
    )


def add(line: Line, **said: Any) -> Any:
    Add = messages.request(ADD)
    topics = [Add.AddPartitionsToTxnTopic(name=said.get("topic", "plain"), partitions=said.get("partitions", [0]))]
    asked = Add.AddPartitionsToTxnTransaction(
        transactional_id=said.get("tid", TID),
        verify_only=said.get("verify_only", False),
        topics=topics,
        **pair(line, said),
    )
    return Add(
        v3_and_below_transactional_id=asked.transactional_id,
        v3_and_below_producer_id=asked.producer_id,
        v3_and_below_producer_epoch=asked.producer_epoch,
        v3_and_below_topics=topics,
        transactions=[asked],
    )


def add_offsets(line: Line, **said: Any) -> Any:
    return messages.request(ADD_OFFSETS)(
        transactional_id=said.get("tid", TID), group_id=said.get("group", "g"), **pair(line, said)
    )


def end(line: Line, **said: Any) -> Any:
    return messages.request(END)(transactional_id=said.get("tid", TID), committed=True, **pair(line, said))


def marker(line: Line, **said: Any) -> Any:
    Write = messages.request(MARKERS)
    topics = [
        Write.WritableTxnMarkerTopic(name=said.get("topic", "plain"), partition_indexes=said.get("partitions", [0]))
    ]
    return Write(
        markers=[
            Write.WritableTxnMarker(
                transaction_result=said.get("commit", False),
                topics=topics,
                coordinator_epoch=said.get("coordinator_epoch", 0),
                transaction_version=said.get("transaction_version", 0),
                **pair(line, said),
            )
        ]
    )


def commit(line: Line, **said: Any) -> Any:
    Commit = messages.request(COMMIT)
    partitions = [
        Commit.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=5)
        for index in said.get("partitions", [0])
    ]
    return Commit(
        transactional_id=said.get("tid", TID),
        group_id=said.get("group", "g"),
        member_id=said.get("member", ""),
        topics=[Commit.TxnOffsetCommitRequestTopic(name=said.get("topic", "plain"), partitions=partitions)],
        **pair(line, said),
    )


def describe(line: Line, **said: Any) -> Any:
    return messages.request(DESCRIBE)(transactional_ids=[said.get("tid", TID)])


def list_(line: Line, **said: Any) -> Any:
    return messages.request(LIST)(transactional_id_pattern=said.get("pattern"))


def produce(line: Line, **said: Any) -> Any:
    builder = BatchBuilder()
    builder.append(b"k", b"v", timestamp=1000)
    given = pair(line, said)
    batch = bytes(builder.build(**given, base_sequence=said.get("sequence", 0), transactional=True))
    Produce = messages.request(PRODUCE)
    data = [Produce.PartitionProduceData(index=0, records=batch)]
    topics = [Produce.TopicProduceData(name="plain", partition_data=data)]
    return Produce(transactional_id=said.get("tid", TID), acks=-1, timeout_ms=1000, topic_data=topics)


MAKERS = {
    produce: (PRODUCE, range(3, 13)),
    find: (FIND, range(7)),
    init: (INIT, range(7)),
    add: (ADD, range(6)),
    add_offsets: (ADD_OFFSETS, range(5)),
    end: (END, range(6)),
    marker: (MARKERS, range(1, 3)),
    commit: (COMMIT, range(6)),
    describe: (DESCRIBE, range(1)),
    list_: (LIST, range(3)),
}
FLEXIBLE_SINCE = {
    produce: 9,
    find: 3,
    init: 2,
    add: 3,
    add_offsets: 3,
    end: 3,
    marker: 1,
    commit: 3,
    describe: 0,
    list_: 0,
}
WITH_TID = (produce, init, add, add_offsets, end, commit, describe)


def since(make: Any, first: int) -> range:
    versions: range = MAKERS[make][1]
    return range(first, versions.stop)


def before(make: Any, end: int) -> range:
    versions: range = MAKERS[make][1]
    return range(versions.start, end)


def of_clients(make: Any) -> range:
    return before(add, 4) if make is add else MAKERS[make][1]


def since_2(make: Any) -> range:
    return range(2, of_clients(make).stop)


def flexible(make: Any) -> range:
    return since(make, FLEXIBLE_SINCE[make])


ANY_OTHER = {"producer_id": 1 << 40}
CLOSED = None
"""What no version of an API can hold: the connection ends, and the node's log says why."""

Row = tuple[Any, dict[str, Any], ErrorCode | None, range]

ROWS: list[Row] = [
    # A transactional id of 100,000 bytes: Kafka takes no text above 32,767 either, however its length is written.
    *((make, {"tid": TOO_LONG}, CLOSED, flexible(make)) for make in (*WITH_TID, find)),
    (init, {"tid": "t" * (LONGEST_BYTES + 1)}, CLOSED, since(init, 2)),
    (list_, {"pattern": TOO_LONG}, CLOSED, since(list_, 2)),
    *((make, {"group": TOO_LONG}, CLOSED, since(make, 3)) for make in (add_offsets, commit)),
    (commit, {"member": TOO_LONG}, CLOSED, since(commit, 3)),
    *((make, {"topic": TOO_LONG}, CLOSED, flexible(make)) for make in (add, marker, commit)),
    # One that nobody has, of 32,767
    *((make, {"tid": UNKNOWN}, E.INVALID_PRODUCER_ID_MAPPING, of_clients(make)) for make in (add, add_offsets, end)),
    (commit, {"tid": UNKNOWN}, E.INVALID_PRODUCER_ID_MAPPING, MAKERS[commit][1]),
    (produce, {"tid": UNKNOWN}, E.INVALID_PRODUCER_ID_MAPPING, MAKERS[produce][1]),
    (describe, {"tid": UNKNOWN}, E.TRANSACTIONAL_ID_NOT_FOUND, MAKERS[describe][1]),
    # None
    *((make, {"tid": ""}, E.INVALID_REQUEST, of_clients(make)) for make in (init, add, add_offsets, end, describe)),
    # A pair that is another's, or was
    *(
        (make, ANY_OTHER, E.INVALID_PRODUCER_ID_MAPPING, of_clients(make))
        for make in (produce, add, add_offsets, end, commit)
    ),
    *((make, {"epoch": 99}, E.INVALID_PRODUCER_EPOCH, before(make, 2)) for make in (add, add_offsets, end)),
    *((make, {"epoch": 99}, E.PRODUCER_FENCED, since_2(make)) for make in (add, add_offsets, end)),
    *((make, {"epoch": 99}, E.INVALID_PRODUCER_EPOCH, of_clients(make)) for make in (produce, commit)),
    (init, {"epoch": -1}, E.INVALID_REQUEST, since(init, 3)),
    (init, {**ANY_OTHER, "epoch": 0}, E.INVALID_PRODUCER_EPOCH, range(3, 4)),
    (init, {**ANY_OTHER, "epoch": 0}, E.PRODUCER_FENCED, since(init, 4)),
    # A timeout, and two-phase commit
    *(
        (init, {"timeout_ms": timeout_ms}, E.INVALID_TRANSACTION_TIMEOUT, MAKERS[init][1])
        for timeout_ms in (0, -1, 900_001, 2**31 - 1)
    ),
    (init, {"keep": True}, E.UNSUPPORTED_VERSION, since(init, 6)),
    (init, {"keep": True, "enable2_pc": True}, E.UNSUPPORTED_VERSION, since(init, 6)),
    # Partitions that are none, among 10,000
    *(
        (add, {"topic": topic, "partitions": list(range(10_000))}, E.UNKNOWN_TOPIC_OR_PARTITION, before(add, 4))
        for topic in ("plain", "none", "")
    ),
    (add, {"partitions": list(range(10_001))}, E.INVALID_REQUEST, before(add, 4)),
    (add, {"partitions": [-1]}, E.UNKNOWN_TOPIC_OR_PARTITION, before(add, 4)),
    (commit, {"partitions": list(range(10_001))}, E.INVALID_COMMIT_OFFSET_SIZE, MAKERS[commit][1]),
    (commit, {"topic": "none"}, E.UNKNOWN_TOPIC_OR_PARTITION, MAKERS[commit][1]),
    (commit, {"group": ""}, E.INVALID_GROUP_ID, MAKERS[commit][1]),
    # What was not added before; later versions have it added
    *(
        (make, {}, E.INVALID_TXN_STATE, versions)
        for make, versions in ((produce, before(produce, 11)), (commit, before(commit, 4)))
    ),
    (produce, {}, E.TRANSACTION_ABORTABLE, range(11, 12)),
    (commit, {}, E.TRANSACTION_ABORTABLE, range(4, 5)),
    # What only brokers may say: markers, and the questions of leaders
    (add, {}, E.CLUSTER_AUTHORIZATION_FAILED, since(add, 4)),
    (add, {"verify_only": True}, E.CLUSTER_AUTHORIZATION_FAILED, since(add, 4)),
    *(
        (marker, said, E.CLUSTER_AUTHORIZATION_FAILED, MAKERS[marker][1])
        for said in ({}, {"commit": True}, ANY_OTHER, {"epoch": 32_767}, {"topic": "none"}, {"coordinator_epoch": -1})
    ),
    (marker, {"transaction_version": 2}, E.CLUSTER_AUTHORIZATION_FAILED, since(marker, 2)),
    (marker, {"partitions": list(range(10_000))}, E.CLUSTER_AUTHORIZATION_FAILED, MAKERS[marker][1]),
    # Patterns
    (list_, {"pattern": "("}, E.INVALID_REGULAR_EXPRESSION, since(list_, 2)),
    (list_, {"pattern": "a{1000}{1000}"}, E.INVALID_REGULAR_EXPRESSION, since(list_, 2)),
    (list_, {"pattern": "x" * 10_000}, E.INVALID_REGULAR_EXPRESSION, since(list_, 2)),
]

BY_BROKERS: list[Row] = [
    (add, {"tid": UNKNOWN}, E.INVALID_PRODUCER_ID_MAPPING, since(add, 4)),
    (add, {"tid": ""}, E.INVALID_REQUEST, since(add, 4)),
    (add, {"epoch": 99}, E.PRODUCER_FENCED, since(add, 4)),
    (add, {"verify_only": True}, E.TRANSACTION_ABORTABLE, since(add, 4)),
    (add, {"partitions": list(range(10_000))}, E.UNKNOWN_TOPIC_OR_PARTITION, since(add, 4)),
    (add, {"partitions": list(range(10_001))}, E.INVALID_REQUEST, since(add, 4)),
    (marker, {"topic": "none"}, E.UNKNOWN_TOPIC_OR_PARTITION, MAKERS[marker][1]),
    (marker, {"partitions": [-1, 1, 2**31 - 1]}, E.UNKNOWN_TOPIC_OR_PARTITION, MAKERS[marker][1]),
    (marker, {"epoch": -1}, E.INVALID_PRODUCER_EPOCH, MAKERS[marker][1]),
    (marker, {"producer_id": -1}, E.INVALID_PRODUCER_ID_MAPPING, MAKERS[marker][1]),
]


@pytest.mark.timeout(120)
async def test_transactions_refuse_what_is_wrong_with_its_own_error(tmp_path: pathlib.Path) -> None:
    stage = TransactionStage(tmp_path / "data")
    await stage.start()
    producer = await stage.producer(TID)
    lines = [Line(stage, listener, producer) for listener in (CLIENTS, "PLAINTEXT")]
    rows: list[list[Row]] = [ROWS, BY_BROKERS]
    try:
        log_ends = {key: each.log.log_end_offset for key, each in stage.node.context.hosted.by_name.items()}
        for line, its_rows in zip(lines, rows, strict=True):
            for make, said, error, versions in its_rows:
                for version in versions:
                    reply = await line.ask(MAKERS[make][0], version, make(line, **said))
                    what = (make.__name__, version, {name: str(value)[:40] for name, value in said.items()})
                    if error is CLOSED:
                        assert reply is None, what
                    else:
                        assert reply is not None, (what, "the connection was closed")
                        assert errors(reply) == {error}, (what, str(reply)[:300])
        assert not stage.failures
        after = {key: each.log.log_end_offset for key, each in stage.node.context.hosted.by_name.items()}
        assert after == log_ends, "nothing was written"
        await stage.check_transaction(TID)
        await stage.check_clean()
        assert not stage.failures
    finally:
        for line in lines:
            line.close()
        await stage.stop()
