"""The log of one partition, in Kafka's own files."""
