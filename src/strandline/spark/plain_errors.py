"""Plain errors: a fault of the cluster or the user is one sentence in Spark's error, without a Python traceback.

PySpark sends `traceback.format_exc()` of what a worker raised to the JVM, so that the sentence comes last, below the frames of two
programs. It leaves the frames out if SPARK_HIDE_TRACEBACK is in the worker's environment when the error is handled, and the
worker ends after it: so it is set here, in a worker of Spark only, and for errors only whose sentence says everything.

Always true: what only a bug may do (AssertionError, TypeError, …) keeps its traceback.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from strandline.client.errors import NoBrokerReachable
from strandline.errors import KafkaError
from strandline.spark.errors import SparkError

HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"
RUNTIME, WORKER = "SPARK_PYTHON_RUNTIME", "PYTHON_WORKER"
"""In the environment of every Python process that the JVM starts: planners, streaming runners and executors' workers."""


@contextmanager
def plain_errors() -> Iterator[None]:
    """Around every function that Spark calls."""
    try:
        yield
    except NoBrokerReachable as error:
        hide_traceback()
        raise SparkError(f"option 'kafka.bootstrap.servers': {error.message}") from None
    except (SparkError, KafkaError):
        hide_traceback()
        raise


def hide_traceback() -> None:
    if os.environ.get(RUNTIME) == WORKER:
        os.environ[HIDE_TRACEBACK] = "1"
