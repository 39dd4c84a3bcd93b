"""The yardstick: the same load against Strandline and Apache Kafka, in one run on one machine."""
