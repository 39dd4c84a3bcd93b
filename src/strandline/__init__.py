"""Strandline: a Kafka-compatible, replicated log in Python."""

__version__ = "0.1.0"
