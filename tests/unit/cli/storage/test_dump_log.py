"""Lines here were compared with those of Apache Kafka's DumpLogSegments; tests/system/test_cli.py does so again."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.cli.storage.dump.kafka_json import type_name
from strandline.ids import Uuid
from strandline.log.indexes import OFFSET_ENTRY, TIME_ENTRY
from strandline.log.txn_index import ENTRY as ABORTED
from strandline.metadata import framing, snapshot
from strandline.metadata.initial_voters import InitialVoter, voters_record
from strandline.metadata.records import FeatureLevelRecord, PartitionRecord, TopicRecord
from strandline.records.batch import BatchBuilder
from strandline.records.compression import CompressionType
from strandline.records.control import ControlRecordType, control_key, end_txn_marker
from strandline.transactions import framing as transaction_framing
from strandline.transactions.metadata import TransactionMetadata
from strandline.transactions.records import transaction_record
from strandline.transactions.states import TransactionState

NAME = "00000000000000000000"


def batch(*records, **settings) -> bytes:
    builder = BatchBuilder()
    for key, value, *headers in records:
        builder.append(key, value, headers, 1000)
    return bytes(builder.build(**settings))


@pytest.fixture
def log(tmp_path):
    def write(*batches: bytes, name: str = f"{NAME}.log") -> str:
        (tmp_path / name).write_bytes(b"".join(batches))
        return str(tmp_path / name)

    return write


def test_batches_and_records(call, log):
    path = log(
        batch((b"k", b"hello", ("h", b"1")), (None, None), base_offset=0, leader_epoch=4),
        batch((None, b"x"), base_offset=2, leader_epoch=4, producer_id=9, producer_epoch=0, base_sequence=7),
    )
    ran = call("kafka-dump-log", "--print-data-log", "--files", path)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[:2] == [f"Dumping {path}", "Log starting offset: 0"]
    assert lines[2].startswith(
        "baseOffset: 0 lastOffset: 1 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
        "partitionLeaderEpoch: 4 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 "
        "CreateTime: 1000 size: "
    )
    assert lines[2].endswith("isvalid: true")
    assert lines[3:5] == [
        "| offset: 0 CreateTime: 1000 keySize: 1 valueSize: 5 sequence: -1 headerKeys: [h] key: k payload: hello",
        "| offset: 1 CreateTime: 1000 keySize: -1 valueSize: -1 sequence: -1 headerKeys: []",
    ]
    assert lines[6].startswith("| offset: 2 CreateTime: 1000 keySize: -1 valueSize: 1 sequence: 7 ")


def test_ours_prints_the_same(call, log):
    path = log(batch((b"k", b"v"), codec=CompressionType.ZSTD))
    assert call("dump-log", "-p", path).out == call("kafka-dump-log", "--print", "--files", path).out


def test_bytes_that_are_no_text_are_replaced_as_java_does(call, log):
    path = log(batch((None, b"a\xed\xa0\x80b\xff"), (None, b"\xed\xb0"), (None, b"\xe0\x80x")))
    payloads = [line.partition("payload: ")[2] for line in call("dump-log", "-p", path).out.splitlines()[3:]]
    assert payloads == ["a\ufffdb\ufffd", "\ufffd", "\ufffd\ufffdx"]


def test_without_records_only_batches(call, log):
    assert len(call("dump-log", log(batch((b"k", b"v")))).out.splitlines()) == 3


def test_contents_alone(call, log):
    ran = call("kafka-dump-log", "--print", "--skip-record-metadata", "--files", log(batch((b"k", b"v"))))
    assert ran.out.splitlines()[-1] == "| key: k payload: v"


def test_control_records(call, log):
    markers = [
        batch(
            (control_key(kind), end_txn_marker(3)), base_offset=offset, control=True, transactional=True, producer_id=1
        )
        for offset, kind in enumerate((ControlRecordType.COMMIT, ControlRecordType.ABORT))
    ]
    lines = call("kafka-dump-log", "--deep-iteration", "--files", log(*markers)).out.splitlines()
    assert lines[3].endswith("headerKeys: [] endTxnMarker: COMMIT coordinatorEpoch: 3")
    assert lines[5].endswith("headerKeys: [] endTxnMarker: ABORT coordinatorEpoch: 3")


def test_a_batch_that_was_damaged_is_not_valid(call, log):
    damaged = bytearray(batch((b"k", b"v")))
    damaged[-2] ^= 1
    assert call("dump-log", log(bytes(damaged))).out.splitlines()[-1].endswith("isvalid: false")


def test_bytes_at_the_end_that_are_no_batch(call, log):
    whole = batch((b"k", b"v"))
    path = log(whole, whole[:40])
    assert call("dump-log", path).out.splitlines()[-1] == f"Found 40 invalid bytes at the end of {NAME}.log"


def test_zeros_are_reported_in_one_line(call, log):
    ran = call("dump-log", log(batch((b"k", b"v")), bytes(100)))
    assert ran.code == 1
    assert "claims 0 bytes" in ran.err
    assert ran.err.count("\n") == 1


def test_a_gap_between_offsets(call, log):
    path = log(batch((b"k", b"v"), base_offset=0), batch((b"k", b"v"), base_offset=5))
    ran = call("dump-log", "-p", path)
    assert ran.err == f"Non-consecutive offsets in {path}\n  0 is followed by 5\n"


def test_the_metadata_log(call, log):
    topic = Uuid(bytes(range(16)))
    records = [
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        TopicRecord(name="t", topic_id=topic),
        PartitionRecord(partition_id=0, topic_id=topic, replicas=(1,), isr=(1,), leader=1, leader_epoch=0),
    ]
    values = [(None, framing.encode(record, 0)) for record in records]
    lines = call("dump-log", "--metadata", log(batch(*values))).out.splitlines()
    assert lines[3].endswith(
        'payload: {"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":30}}'
    )
    assert '"topicId":"AAECAwQFBgcICQoLDA0ODw"' in lines[4]
    # leaderRecoveryState is tagged and has its default, so it is not shown.
    assert '"leader":1,"leaderEpoch":0,"partitionEpoch":-1}}' in lines[5]


def test_what_is_no_metadata_record_is_passed_over(call, log):
    lines = call("dump-log", "--metadata", log(batch((None, b"\x07")))).out.splitlines()
    assert "payload: Error at 0, skipping. " in lines[3]


def test_snapshots_name_their_offset(call, log):
    path = log(batch((None, b"x")), name="00000000000000000120-0000000003.checkpoint")
    assert call("dump-log", path).out.splitlines()[1] == "Snapshot end offset: 120, epoch: 3"


def test_control_records_of_a_snapshot(call, log):
    voters = voters_record([InitialVoter(1, "127.0.0.1", 29093, Uuid.parse("Oyuuf-WFT6m6VDA6aWUMNA"))], "CONTROLLER")
    records = [FeatureLevelRecord(name="metadata.version", feature_level=30)]
    parts = snapshot.write_records(records, 30, (120, 3), kraft_version=1, voters=voters, timestamp_ms=1000)
    path = log(*parts, name="00000000000000000120-0000000003.checkpoint")
    ran = call("dump-log", "--cluster-metadata-decoder", path)
    lines = ran.out.splitlines()
    record = "CreateTime: 1000 keySize: 4 valueSize:"
    assert (ran.code, lines[1]) == (0, "Snapshot end offset: 120, epoch: 3")
    assert [line for line in lines if line.startswith("|")] == [
        f"| offset: 0 {record} 11 sequence: -1 headerKeys: [] SnapshotHeader "
        '{"version":0,"lastContainedLogTimestamp":1000}',
        f'| offset: 1 {record} 5 sequence: -1 headerKeys: [] KRaftVersion {{"version":0,"kRaftVersion":1}}',
        f"| offset: 2 {record} 55 sequence: -1 headerKeys: [] KRaftVoters "
        '{"version":0,"voters":[{"voterId":1,"voterDirectoryId":"Oyuuf-WFT6m6VDA6aWUMNA","endpoints":'
        '[{"name":"CONTROLLER","host":"127.0.0.1","port":29093}],"kRaftVersionFeature":'
        '{"minSupportedVersion":0,"maxSupportedVersion":1}}]}',
        "| offset: 3 CreateTime: 1000 keySize: -1 valueSize: 23 sequence: -1 headerKeys: [] payload: "
        '{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":30}}',
        f'| offset: 4 {record} 3 sequence: -1 headerKeys: [] SnapshotFooter {{"version":0}}',
    ]
    assert call("kafka-dump-log", "--cluster-metadata-decoder", "--files", path).out == ran.out


def test_indexes_are_compared_with_their_log(call, log, tmp_path):
    first = batch((b"k", b"v"))
    log(first, batch((b"k", b"v"), base_offset=1))
    index, times = tmp_path / f"{NAME}.index", tmp_path / f"{NAME}.timeindex"
    index.write_bytes(OFFSET_ENTRY.pack(1, len(first)))
    times.write_bytes(TIME_ENTRY.pack(1000, 1))
    ran = call("kafka-dump-log", "--files", f"{index},{times}")
    assert ran.out.splitlines() == [
        f"Dumping {index}",
        f"offset: 1 position: {len(first)}",
        f"Dumping {times}",
        "timestamp: 1000 offset: 1",
    ]
    assert ran.err == ""


def test_what_an_index_has_wrong(call, log, tmp_path):
    first = batch((b"k", b"v"))
    log(first, batch((b"k", b"v"), base_offset=1))
    index, times = tmp_path / f"{NAME}.index", tmp_path / f"{NAME}.timeindex"
    index.write_bytes(OFFSET_ENTRY.pack(1, 0))
    times.write_bytes(TIME_ENTRY.pack(999, 0))
    ran = call("kafka-dump-log", "--verify-index-only", "--files", f"{index},{times}")
    assert ran.err.splitlines() == [
        f"Mismatches in :{index}",
        "  Index offset: 1, log offset: 0",
        f"Found timestamp mismatch in :{times}",
        "  Index timestamp: 999, log timestamp: 1000",
    ]


def test_aborted_transactions(call, tmp_path):
    path = tmp_path / f"{NAME}.txnindex"
    path.write_bytes(ABORTED.pack(0, 7, 10, 20, 15))
    assert call("dump-log", str(path)).out.splitlines()[1] == (
        "version: 0 producerId: 7 firstOffset: 10 lastOffset: 20 lastStableOffset: 15"
    )


def test_a_decoder_that_is_not_there_is_refused(call, log):
    path = log(batch((b"k", b"v")))
    refused = call("kafka-dump-log", "--offsets-decoder", "--files", path)
    assert (refused.code, refused.out) == (1, "")
    assert "--offsets-decoder is not supported yet" in refused.err


def test_an_unknown_file_is_ignored(call, tmp_path):
    (tmp_path / "leader-epoch-checkpoint").touch()
    ran = call("dump-log", str(tmp_path / "leader-epoch-checkpoint"))
    assert ran.code == 0
    assert ran.err.startswith("Ignoring unknown file ")


def test_type_names():
    assert type_name("NoOpRecord") == "NO_OP_RECORD"
    assert type_name("RegisterBrokerRecord") == "REGISTER_BROKER_RECORD"


def test_what_is_no_file_is_one_line_before_anything_is_printed(call, tmp_path):
    (tmp_path / "00000000000000000000.log").touch()
    (tmp_path / "topic-0").mkdir()
    for path, reason in (
        (tmp_path / "00000000000000000007.log", "there is no file "),
        (tmp_path / "topic-0", "is a directory; name the files in it"),
    ):
        files = (f"{tmp_path}/00000000000000000000.log", str(path))
        for ran in (call("dump-log", *files), call("kafka-dump-log", "--files", ",".join(files))):
            assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
            assert reason in ran.err


def test_an_empty_and_a_cut_segment(call, tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.touch()
    assert call("dump-log", str(path)).out == f"Dumping {path}\nLog starting offset: 0\n"
    path.write_bytes(bytes(5))
    assert call("dump-log", str(path)).out.endswith(f"Found 5 invalid bytes at the end of {path.name}\n")


def state(name: str, version: int, **changes) -> tuple[bytes, bytes | None]:
    at_9 = TransactionMetadata(producer_id=7, epoch=3, timeout_ms=60_000, state=TransactionState.ONGOING, update_ms=9)
    metadata = replace(at_9, **changes)
    return transaction_framing.encode(transaction_record(name, metadata), version)


def transactions(call, path: str) -> list[str]:
    lines = call(
        "kafka-dump-log", "--transaction-log-decoder", "--skip-record-metadata", "--files", path
    ).out.splitlines()
    return [line for line in lines if line.startswith("| ")]


def test_txn_t6_records_of_the_transaction_log_as_kafka_prints_them(call, log):
    partitions = frozenset({("t", 1), ("t", 0)})
    path = log(
        batch(
            state("pay", 0, partitions=partitions, start_ms=5),
            state("pay", 1, partitions=partitions, start_ms=5, previous_producer_id=6, transaction_version=2),
            state("done", 1, state=TransactionState.EMPTY),
            transaction_framing.encode(transaction_record("gone", None), 1),
        )
    )
    key = '| key: {"type":"0","data":{"transactionalId":"pay"}} payload: '
    start = '"transactionTimeoutMs":60000,"transactionStatus":"Ongoing",'
    start += '"transactionPartitions":[{"topic":"t","partitionIds":[0,1]}]'
    end = '"transactionLastUpdateTimestampMs":9,"transactionStartTimestampMs":5'
    assert transactions(call, path) == [
        f'{key}{{"version":"0","data":{{"producerId":7,"producerEpoch":3,{start},{end}}}}}',
        f'{key}{{"version":"1","data":{{"producerId":7,"previousProducerId":6,"producerEpoch":3,{start},{end},'
        '"clientTransactionVersion":2}}',
        '| key: {"type":"0","data":{"transactionalId":"done"}} payload: {"version":"1","data":{"producerId":7,"producerEpoch":3,'
        '"transactionTimeoutMs":60000,"transactionStatus":"Empty","transactionPartitions":null,'
        '"transactionLastUpdateTimestampMs":9,"transactionStartTimestampMs":-1}}',
        '| key: {"type":"0","data":{"transactionalId":"gone"}} payload: <DELETE>',
    ]
    assert call("dump-log", "--transaction-log-decoder", path).out.splitlines()[3].endswith("5}}")


def test_what_is_no_record_of_a_transaction_is_named_and_the_rest_printed(call, log):
    key, value = state("pay", 0)
    assert value is not None
    unknown_status = value[:16] + b"\x63" + value[17:]
    path = log(
        batch(
            (b"\0\x09x", b"v"),
            (b"\0", b"v"),
            (key, b"\0\x09"),
            (key, value[:9]),
            (key, unknown_status),
        )
    )
    first, second, third, fourth, fifth = transactions(call, path)
    assert first == "| key: Unknown record type 9 at offset 0, skipping."
    assert second.startswith("| key: Error at offset 1, skipping. ")
    assert third == "| key: Error at offset 2, skipping. Found an unknown record version 9"
    assert fourth.startswith("| key: Error at offset 3, skipping. ")
    assert '"transactionStatus":"99"' in fifth
    ran = call("dump-log", "--transaction-log-decoder", log(batch((None, b"v"))))
    assert (ran.code, "Failed to decode message at offset 0" in ran.err) == (1, True)
