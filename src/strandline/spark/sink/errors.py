"""Why rows are not written.

Always true: the text is one line. A refused frame or row names the column; a write that failed names the topic and
partition, and what the broker said.
"""

from __future__ import annotations

from strandline.spark.errors import SparkError


class ColumnError(SparkError):
    """A column that is missing, of a type that cannot be written, or with a value that no record can have."""


class ModeError(SparkError):
    """A save mode that a topic does not have."""


class WriteFailed(SparkError):
    """Records were refused, or not acknowledged in time. What was sent before them may be in the log."""
