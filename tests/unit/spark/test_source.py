"""The data source as Spark finds it: its schema, who reads, what is refused when."""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

import subprocess
import sys

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_strandline import DefaultSource
from strandline.columnar.columns import arrow_schema
from strandline.spark.errors import OptionError, SparkError
from strandline.spark.options.read import COLUMNS
from strandline.spark.source import TYPES
from strandline.spark.stream_reader import RefusedStream, StreamReader

NEEDED = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}


def source(**options: str) -> DefaultSource:
    return DefaultSource(NEEDED | options)


def test_the_columns_are_those_of_sparks_kafka_connector() -> None:
    assert source().schema().simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    with_headers = source(includeHeaders="true").schema()
    assert with_headers.fieldNames() == [*COLUMNS, "headers"]
    assert with_headers["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"
    assert source(columns="value,offset").schema().fieldNames() == ["value", "offset"]


def test_what_is_decoded_has_the_types_that_spark_expects() -> None:
    everything = source(includeHeaders="true").schema()
    assert to_arrow_schema(everything, timezone="UTC").equals(arrow_schema(list(TYPES)))


def test_what_is_wrong_for_batches_and_streams_alike_is_refused_with_the_schema() -> None:
    with pytest.raises(OptionError, match="option 'subscribes' is unknown; did you mean 'subscribe'"):
        source(subscribes="t").schema()
    with pytest.raises(OptionError, match="'subscribe' and 'assign' contradict"):
        source(assign='{"t":[0]}').schema()
    with pytest.raises(OptionError, match="endingTimestamp") as refused:
        source(startingTimestamp="2", endingTimestamp="1").schema()
    assert "stream" not in str(refused.value), "only a batch query has an end, so this is one"
    assert source(startingOffsets="latest").schema(), "right for a stream"
    assert source(endingOffsets="latest").schema(), "right for a batch query"


def test_what_is_wrong_for_one_is_refused_by_its_reader() -> None:
    schema = source().schema()
    with pytest.raises(OptionError, match="'startingOffsets' of a batch query is not 'latest'"):
        source(startingOffsets="latest").reader(schema)
    assert isinstance(source(startingOffsets="latest").streamReader(schema), StreamReader)
    # PySpark's runner would hide what streamReader() raises behind an error of its own.
    assert isinstance(source(endingOffsets="latest").streamReader(schema), RefusedStream)


def test_a_schema_of_the_users_picks_columns() -> None:
    picked = StructType().add("offset", "long").add("value", "binary")
    assert source().reader(picked)._reading.columns == ("offset", "value")
    for wrong, what in [
        (StructType().add("val", "binary"), "a column 'val'; this source has only key, value,"),
        (StructType().add("value", "string"), "column 'value' of the schema is a binary"),
        (
            StructType().add("value", "binary", nullable=False),
            "column 'value' of the schema is a binary that may be null",
        ),
    ]:
        with pytest.raises(SparkError, match=what):
            source().reader(wrong)
        assert isinstance(source().streamReader(wrong), RefusedStream)


def test_filters_are_pushed_only_to_who_asks_for_it() -> None:
    """Spark refuses a reader that has pushFilters() of its own while its setting is off, as it is by default."""
    schema = source().schema()
    usual, pushing = source().reader(schema), source(pushFilters="true").reader(schema)
    assert usual.pushFilters.__func__ is DataSourceReader.pushFilters
    assert pushing.pushFilters.__func__ is not DataSourceReader.pushFilters


def test_everything_that_travels_is_small() -> None:
    schema = source().schema()
    for reader in (source().reader(schema), source().streamReader(schema)):
        assert len(cloudpickle.dumps(reader)) < 4096


def test_finding_the_source_imports_nothing_heavy() -> None:
    """One pyspark_* module that fails or dawdles does so for every data source."""
    code = (
        "import sys, pyspark.sql.datasource; before = set(sys.modules); import pyspark_strandline;"
        "print(sorted(set(sys.modules) - before))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "['pyspark_strandline']"


def test_planning_loads_no_kernels() -> None:
    code = (
        "import sys; from pyspark_strandline import DefaultSource;"
        f"source = DefaultSource({NEEDED!r}); schema = source.schema(); source.reader(schema); source.streamReader(schema);"
        "print([name for name in ('numba', 'numpy', 'strandline.columnar') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "numba" not in found
    assert "columnar" not in found
