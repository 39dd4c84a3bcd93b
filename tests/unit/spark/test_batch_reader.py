"""A batch query, planned and read as Spark does it, on a real node."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import json
import logging

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSourceReader, EqualTo, GreaterThanOrEqual, InputPartition

from pyspark_strandline import DefaultSource
from strandline.spark.errors import DataLoss, SparkError, TopicError
from tests.unit.spark.node_beside import Cluster

from .engine import batch_values


def reader_of(options: dict[str, str]) -> DataSourceReader:
    source = DefaultSource(options)
    return source.reader(source.schema())


def read(reader: DataSourceReader) -> list[str]:
    """Planned here, read by a copy, as on an executor."""
    partitions = cloudpickle.loads(cloudpickle.dumps(reader.partitions()))
    copy = cloudpickle.loads(cloudpickle.dumps(reader))
    return [value for partition in partitions for value in batch_values(copy.read(partition))]


@pytest.fixture(scope="module")
def topic(cluster: Cluster):
    """Of two partitions: 0 has 0 to 9, 1 has 10 to 14; the timestamps of each begin at 1000."""
    topic = cluster.make("batches", 2)
    cluster.write(topic, [b"%d" % n for n in range(10)], 0)
    cluster.write(topic, [b"%d" % n for n in range(10, 15)], 1)
    return topic


def test_from_the_beginning_to_the_end(cluster: Cluster, topic) -> None:
    assert read(reader_of(cluster.options(subscribe=topic))) == [str(n) for n in range(15)]


def test_from_offset_to_offset(cluster: Cluster, topic) -> None:
    starts, ends = {topic: {"0": 8, "1": -2}}, {topic: {"0": -1, "1": 1}}
    options = cluster.options(subscribe=topic, startingOffsets=json.dumps(starts), endingOffsets=json.dumps(ends))
    assert read(reader_of(options)) == ["8", "9", "10"]


def test_from_time_to_time(cluster: Cluster, topic) -> None:
    options = cluster.options(subscribe=topic, startingTimestamp=1003, endingTimestamp=1005)
    assert read(reader_of(options)) == ["3", "4", "13", "14"]


def test_an_empty_topic_has_no_rows(cluster: Cluster) -> None:
    reader = reader_of(cluster.options(subscribe=cluster.make("batch-empty")))
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == [], "Spark reads one partition without a value then"


def test_large_partitions_are_split(cluster: Cluster, topic) -> None:
    splits = [p.value for p in reader_of(cluster.options(subscribe=topic, minPartitions=5)).partitions()]
    assert len(splits) == 5
    assert [split.end - split.start for split in splits if split.partition == 0] == [3, 3, 4]
    few = reader_of(cluster.options(subscribe=topic, maxRecordsPerPartition=5))
    assert [p.value.end - p.value.start for p in few.partitions()] == [5, 5, 5]
    assert read(few) == [str(n) for n in range(15)]


def test_pushed_filters_narrow_what_is_read_and_go_back_to_spark(cluster: Cluster, topic) -> None:
    reader = reader_of(cluster.options(subscribe=topic, pushFilters="true"))
    filters = [EqualTo(("partition",), 0), GreaterThanOrEqual(("offset",), 7)]
    left = list(reader.pushFilters(filters))
    assert len(left) == 2
    assert all(one is other for one, other in zip(left, filters, strict=True))
    assert read(reader) == ["7", "8", "9"]


def test_a_topic_that_does_not_exist(cluster: Cluster) -> None:
    with pytest.raises(TopicError, match="there is no topic 'nowhere'"):
        reader_of(cluster.options(subscribe="nowhere")).partitions()


def test_offsets_that_the_log_does_not_have(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    topic = cluster.make("batch-lost")
    cluster.write(topic, [b"0", b"1", b"2"])
    cluster.admin.delete_records({(topic, 0): 2})
    options = cluster.options(subscribe=topic, startingOffsets=json.dumps({topic: {"0": 1}}))
    with pytest.raises(DataLoss, match=r"batch-lost-0 has no offset 1 any more: its log starts at 2"):
        reader_of(options).partitions()
    with caplog.at_level(logging.WARNING, "strandline.spark"):
        assert read(reader_of(options | {"failOnDataLoss": "false"})) == ["2"]
    assert "batch-lost-0 has no offset 1" in caplog.text


def test_nobody_there_names_the_option() -> None:
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "kafka.default.api.timeout.ms": "50"}
    with pytest.raises(SparkError, match=r"option 'kafka.bootstrap.servers': no broker reachable at 127\.0\.0\.1:1"):
        reader_of(options).partitions()
