"""PySpark with topics as sources and sinks."""
