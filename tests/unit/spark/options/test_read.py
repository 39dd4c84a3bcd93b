"""All that a source is told."""

from __future__ import annotations

import pickle

import pytest

from strandline.columnar import columns
from strandline.spark.errors import OptionError
from strandline.spark.options import ReadOptions, read_columns, read_options
from strandline.spark.options.bound import AtGroup, AtTimestamp, Earliest, Latest
from strandline.spark.options.names import READ
from strandline.spark.options.read import COLUMNS, HEADERS
from strandline.spark.options.selection import Subscribe
from tests.unit.spark.memory_cluster_view import BROKER

LEAST = BROKER | {"subscribe": "t"}


def batch(**given: str) -> ReadOptions:
    return read_options(LEAST | given, streaming=False)


def stream(**given: str) -> ReadOptions:
    return read_options(LEAST | given, streaming=True)


def test_the_defaults_are_those_of_sparks_own_connector() -> None:
    found = stream()
    assert (found.selection, found.start, found.end) == (Subscribe(("t",)), Latest(), None)
    assert (found.fail_on_data_loss, found.start_without_match, found.trigger_delay_max_ms) == (True, "error", 900_000)
    assert (found.partitions_min, found.records_per_partition_max) == (None, None)
    assert (found.offsets_per_trigger_max, found.offsets_per_trigger_min, found.bytes_per_trigger_max) == (None,) * 3
    assert (found.offset_attempts_max, found.offset_retry_ms, found.metadata_ttl_ms) == (3, 1000, None)
    assert (found.group_id, found.fetch_timeout_ms, found.push_filters, found.warnings) == (None, 120_000, False, ())
    assert (batch().start, batch().end) == (Earliest(), Latest())


def test_every_option_of_a_stream_reaches_its_place() -> None:
    found = read_options(
        LEAST
        | {
            "startingTimestamp": "5",
            "startingOffsetsByTimestampStrategy": "LATEST",
            "failOnDataLoss": "false",
            "includeHeaders": "true",
            "pushFilters": "true",
            "minPartitions": "4",
            "maxRecordsPerPartition": "100",
            "maxOffsetsPerTrigger": "1000",
            "minOffsetsPerTrigger": "10",
            "maxTriggerDelay": "30s",
            "maxBytesPerTrigger": "1m",
            "groupId": "g",
            "kafkaConsumer.pollTimeoutMs": "512",
            "fetchOffset.numRetries": "7",
            "fetchOffset.retryIntervalMs": "0",
            "partition.metadata.cache.ttl.ms": "60000",
            "kafka.isolation.level": "read_committed",
        },
        streaming=True,
    )
    assert (found.start, found.start_without_match, found.fail_on_data_loss) == (AtTimestamp(5), "latest", False)
    assert found.columns == (*COLUMNS, HEADERS)
    assert (found.partitions_min, found.records_per_partition_max) == (4, 100)
    assert (found.offsets_per_trigger_max, found.offsets_per_trigger_min) == (1000, 10)
    assert (found.trigger_delay_max_ms, found.bytes_per_trigger_max) == (30_000, 1 << 20)
    assert (found.group_id, found.fetch_timeout_ms, found.push_filters) == ("g", 512, True)
    assert (found.offset_attempts_max, found.offset_retry_ms, found.metadata_ttl_ms) == (7, 0, 60_000)
    assert found.consumer.is_read_committed
    assert found.warnings == ()


def test_they_travel_to_executors() -> None:
    found = stream(startingOffsets='{"t":{"0":5}}', maxBytesPerTrigger="1g")
    assert pickle.loads(pickle.dumps(found)) == found


def test_the_columns_are_those_that_the_decoder_knows() -> None:
    assert (COLUMNS, HEADERS) == (columns.COLUMNS, columns.HEADERS)


def test_columns_may_be_picked_and_are_known_before_the_query() -> None:
    assert read_columns({"columns": "Value, offset"}) == ("value", "offset")
    assert read_columns({"includeHeaders": "true"}) == (*COLUMNS, HEADERS)
    assert stream(columns="headers").columns == (HEADERS,)


def test_a_batch_may_start_where_a_group_is() -> None:
    found = batch(startingOffsets="group", groupId="g")
    assert (found.start, found.warnings) == (AtGroup("g"), ())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"assign": '{"t":[0]}'}, "'subscribe' and 'assign' contradict"),
        ({"failOnDataLoss": "maybe"}, "'failOnDataLoss' is true or false"),
        ({"minPartitions": "0"}, "'minPartitions' is at least 1"),
        ({"minPartitions": "3000000000"}, "'minPartitions' is at most 2147483647"),
        ({"maxRecordsPerPartition": "0"}, "'maxRecordsPerPartition' is at least 1"),
        ({"maxOffsetsPerTrigger": "0"}, "'maxOffsetsPerTrigger' is at least 1"),
        ({"maxBytesPerTrigger": "0"}, "'maxBytesPerTrigger' is a size"),
        ({"maxTriggerDelay": "soon"}, "'maxTriggerDelay' is a time"),
        (
            {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
            "'minOffsetsPerTrigger' (5) is more than 'maxOffsetsPerTrigger' (4)",
        ),
        ({"startingOffsetsByTimestampStrategy": "none"}, "'startingOffsetsByTimestampStrategy' is error or latest"),
        ({"partition.metadata.cache.ttl.ms": "0"}, "'partition.metadata.cache.ttl.ms' is -1"),
        ({"groupId": " "}, "'groupId' is empty"),
        ({"columns": "value,key2"}, "'columns' has some of key, value, topic"),
        ({"columns": "value,VALUE"}, "'columns' has 'value' twice"),
        ({"columns": ","}, "'columns' names no column"),
        ({"columns": "value", "includeHeaders": "true"}, "'includeHeaders' is true and 'columns' has no 'headers'"),
        ({"fetchOffset.numRetries": "0"}, "'fetchOffset.numRetries' is at least 1"),
        ({"kafkaConsumer.pollTimeoutMs": "x"}, "'kafkaConsumer.pollTimeoutMs' is a whole number"),
        ({"kafka.auto.offset.reset": "latest"}, "'kafka.auto.offset.reset' is not supported"),
        ({"pushFilters": "x"}, "'pushFilters' is true or false"),
    ],
)
def test_what_is_refused_in_batch_and_stream(given: dict[str, str], says: str) -> None:
    for streaming in (False, True):
        with pytest.raises(OptionError) as refused:
            read_options(LEAST | given, streaming=streaming)
        assert says in str(refused.value)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(OptionError, match=f"option '{name}' is one of batch queries"):
        stream(**{name: "latest"})


def test_the_brokers_are_required() -> None:
    with pytest.raises(OptionError, match=r"'kafka\.bootstrap\.servers' is missing"):
        read_options({"subscribe": "t"}, streaming=True)


def test_contradicting_ends_are_seen_before_a_broker_is_asked() -> None:
    with pytest.raises(OptionError, match="is after 'endingTimestamp'"):
        batch(startingTimestamp="9", endingTimestamp="5")


@pytest.mark.parametrize(
    ("streaming", "given", "named"),
    [
        (False, {"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger"),
        (False, {"minOffsetsPerTrigger": "5"}, "minOffsetsPerTrigger"),
        (False, {"maxTriggerDelay": "5s"}, "maxTriggerDelay"),
        (False, {"maxBytesPerTrigger": "5"}, "maxBytesPerTrigger"),
        (False, {"groupId": "g"}, "groupId"),
        (True, {"groupIdPrefix": "g"}, "groupIdPrefix"),
        (True, {"maxTriggerDelay": "5s"}, "maxTriggerDelay"),
        (True, {"startingTimestamp": "5", "startingOffsets": "earliest"}, "startingOffsets"),
        (False, {"endingOffsetsByTimestamp": '{"t":{"0":1}}', "endingOffsets": "latest"}, "endingOffsets"),
        (True, {"kafka.group.id": "g"}, "kafka.group.id"),
        (True, {"topic": "x"}, "topic"),
    ],
)
def test_what_has_no_effect_is_said(streaming: bool, given: dict[str, str], named: str) -> None:
    found = read_options(LEAST | given, streaming=streaming)
    assert [warning.split("'")[1] for warning in found.warnings] == [named]


def test_no_option_is_known_by_name_and_then_forgotten() -> None:
    """A text that is nothing is refused or warned of, whichever option has it; those that take any text are listed."""
    takes_any = {"subscribe", "subscribePattern", "groupId"}
    for name in set(READ) - takes_any:
        given = (BROKER if name == "assign" else LEAST) | {name: "\x00"}
        refusals = []
        for streaming in (False, True):
            try:
                refusals.append(" ".join(read_options(given, streaming=streaming).warnings))
            except OptionError as error:
                refusals.append(str(error))
        assert all(f"'{name}'" in refusal for refusal in refusals), name
