"""Options of the source and the sink, named as in Spark's Kafka connector.

    names.py        all of them, and what happens to unknown ones
    values.py       from text to numbers, times, sizes, JSON by topic and partition
    selection.py    subscribe, subscribePattern, assign
    bound.py        starting* and ending*
    kafka.py        kafka.*: settings of the client; kafka_names.py has their table, tls.py the ssl.* ones
    read.py, write.py    the whole

Always true: an option that is refused is named in the error, in one line.
"""

from __future__ import annotations

from strandline.spark.options.read import ReadOptions, read_columns, read_options
from strandline.spark.options.write import WriteOptions, write_options

__all__ = ["ReadOptions", "WriteOptions", "read_columns", "read_options", "write_options"]
