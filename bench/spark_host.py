"""One Spark session in a process of its own, as a program that reads topics starts it; it runs the queries that stdin names.

    python -m bench.spark_host '{"spark.jars": "..."}'      # then a line of JSON for each query on stdin

Always true: every line is answered by one line; nothing but answers goes to stdout, not even what Spark prints; and a
step that takes longer than STEP_S_MAX ends the process, and Spark's JVM with it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import TextIO

STEP_S_MAX = 300


def main(settings: dict[str, str], answers: TextIO) -> None:
    signal.alarm(STEP_S_MAX)
    started = time.perf_counter()
    from strandline.spark import session

    spark = session("bench", master="local[2]", config=settings)
    session_s = time.perf_counter() - started
    from bench import spark_queries
    from bench.spark_ceiling import Ceiling

    spark.dataSource.register(Ceiling)
    _answer(answers, {"session_s": session_s})
    for line in sys.stdin:
        signal.alarm(STEP_S_MAX)
        asked = json.loads(line)
        query = spark_queries.Query(**asked["query"])
        # What one contender leaves behind is not for the next one to clear away.
        spark.sparkContext._jvm.java.lang.System.gc()  # type: ignore[union-attr]
        try:
            if asked["check"]:
                spark_queries.check(spark, query)
                _answer(answers, {})
            else:
                _answer(answers, spark_queries.run(spark, query)._asdict())
        except Exception as error:
            _answer(answers, {"error": f"{type(error).__name__}: {error}"})
        signal.alarm(STEP_S_MAX)
    spark.stop()


def _answer(answers: TextIO, answer: object) -> None:
    print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    only_answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    main(json.loads(sys.argv[1]), only_answers)
