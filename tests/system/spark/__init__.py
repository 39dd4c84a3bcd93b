"""Spark on Strandline and on Apache Kafka: one Spark and one cluster of each kind for all files of this folder."""
