"""Judges from outside: Apache Kafka's own tools and brokers, run beside ours to see whether they agree."""
