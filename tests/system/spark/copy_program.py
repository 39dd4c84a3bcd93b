"""A program for test_kills.py: it copies a topic to another topic and to Parquet until somebody kills it.

python -m tests.system.spark.copy_program copy BOOTSTRAP FROM TO DIRECTORY     two streams, with checkpoints in DIRECTORY
python -m tests.system.spark.copy_program read DIRECTORY                       what Spark finds in the Parquet files, as JSON
"""

from __future__ import annotations

import json
import sys
from typing import Any

from strandline.spark import session
from tests.system.spark.standalone import QUICK_JAVA

EXECUTORS = "local-cluster[2,1,1024]"
"""Two executors as processes of their own, so that one can be killed."""
BATCH_ROWS_MAX = 500
"""So that what waits becomes many micro-batches, not one."""


def main(arguments: list[str]) -> None:
    if arguments[0] == "copy":
        copy(*arguments[1:])
    else:
        read(*arguments[1:])


def copy(bootstrap: str, source: str, sink: str, directory: str) -> None:
    spark = session(
        "kills",
        master=EXECUTORS,
        config={
            "spark.executor.memory": "768m",
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": QUICK_JAVA,
            "spark.executor.extraJavaOptions": QUICK_JAVA,
        },
    )
    settings = {"kafka.bootstrap.servers": bootstrap}

    def rows(group: str) -> Any:
        reading = spark.readStream.format("strandline").options(**settings, subscribe=source, groupId=group)
        return reading.options(startingOffsets="earliest", maxOffsetsPerTrigger=BATCH_ROWS_MAX).load()

    def start(name: str, writing: Any) -> None:
        writing.option("checkpointLocation", f"{directory}/{name}").trigger(processingTime="300 milliseconds").start()

    to_topic = rows("to-topic").select("key", "value").writeStream.format("strandline")
    start("to-topic", to_topic.options(**settings, topic=sink))
    to_parquet = rows("to-parquet").selectExpr("cast(value as string) as value").writeStream.format("parquet")
    start("to-parquet", to_parquet.option("path", f"{directory}/parquet"))
    spark.streams.awaitAnyTermination()


def read(directory: str) -> None:
    spark = session(
        "kills", master="local[1]", config={"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": QUICK_JAVA}
    )
    found = [int(row.value) for row in spark.read.parquet(f"{directory}/parquet").collect()]
    print(json.dumps(sorted(found)))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
