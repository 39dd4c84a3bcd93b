"""A program for test_cluster.py: the same on any master. It copies a topic, as a stream, and tells who did it.

program.py BOOTSTRAP FROM TO DIRECTORY
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from strandline.spark import session


@F.udf(StringType())
def whoami(_):  # type: ignore[no-untyped-def]  # PySpark takes hints for those of Arrow functions
    """Where this executor's Python and packages are, and what it says when it needs the kernels."""
    import os
    import sys

    import numba
    import pyarrow

    import strandline
    from strandline.columnar.warming import compile_once

    said: list[str] = []
    compile_once(said.append)
    found = {
        "python": sys.executable,
        "prefix": sys.prefix,
        "strandline": strandline.__file__,
        "pyarrow": pyarrow.__file__,
        "numba": numba.__file__,
        "directory": os.getcwd(),
        "said": said,
        "python path": os.environ.get("PYTHONPATH", ""),
    }
    return json.dumps(found)


def main(bootstrap: str, source: str, sink: str, directory: str) -> None:
    spark = session("copy", config={"spark.ui.enabled": "false"})
    cluster = {"kafka.bootstrap.servers": bootstrap}
    stream = (
        spark.readStream.format("strandline").options(**cluster, subscribe=source, startingOffsets="earliest").load()
    )
    query = (
        stream.select("key", F.upper(F.col("value").cast("string")).alias("value"))
        .writeStream.format("strandline")
        .options(**cluster, topic=sink, checkpointLocation=f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    copied = spark.read.format("strandline").options(**cluster, subscribe=sink).load()
    values = sorted(row.value for row in copied.select(F.col("value").cast("string").alias("value")).collect())
    # Two tasks that take a moment, so that each of two executors gets one.
    found = spark.range(0, 8, 1, 8).select(whoami("id").alias("found")).distinct().collect()
    told = {
        "master": spark.sparkContext.master,
        "values": values,
        "executors": [json.loads(row.found) for row in found],
    }
    print(f"TOLD {json.dumps(told)}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
