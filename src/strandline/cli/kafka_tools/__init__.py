"""Apache Kafka's tools under their own names, with their flags and their output, byte for byte."""
