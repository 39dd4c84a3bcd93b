"""All that a sink is told."""

from __future__ import annotations

import pickle

import pytest

from strandline.records.compression import CompressionType
from strandline.spark.errors import OptionError
from strandline.spark.options import write_options
from tests.unit.spark.memory_cluster_view import BROKER


def test_a_topic_for_all_rows_or_none() -> None:
    assert write_options(BROKER | {"Topic": " t "}, streaming=False).topic == "t"
    assert write_options(BROKER, streaming=True).topic is None
    with pytest.raises(OptionError, match="option 'topic' is empty"):
        write_options(BROKER | {"topic": " "}, streaming=False)


def test_the_producers_settings() -> None:
    found = write_options(BROKER | {"kafka.compression.type": "lz4", "checkpointLocation": "x"}, streaming=True)
    assert found.producer.compression_type is CompressionType.LZ4
    assert found.producer.idempotent
    assert found.warnings == ()
    assert pickle.loads(pickle.dumps(found)) == found


def test_what_is_refused() -> None:
    with pytest.raises(OptionError, match=r"'kafka\.bootstrap\.servers' is missing"):
        write_options({"topic": "t"}, streaming=False)
    with pytest.raises(OptionError, match=r"'kafka\.key\.serializer' is not supported"):
        write_options(BROKER | {"kafka.key.serializer": "x"}, streaming=False)
    with pytest.raises(OptionError, match="'topics' is unknown; did you mean 'topic'"):
        write_options(BROKER | {"topics": "t"}, streaming=False)


def test_options_of_the_source_are_warned_of() -> None:
    found = write_options(BROKER | {"subscribe": "t", "kafka.isolation.level": "x"}, streaming=False)
    assert [warning.split("'")[1] for warning in found.warnings] == ["subscribe", "kafka.isolation.level"]
