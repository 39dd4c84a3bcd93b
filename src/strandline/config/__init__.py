"""Configuration in Kafka's words: one table of keys, and what one node or one topic makes of it.

Every key is declared once (`broker.py`, `topic.py`); that declaration parses a value, answers DescribeConfigs, checks
IncrementalAlterConfigs and prints the reference. A key whose meaning is not honoured is refused by name, never ignored in silence.
"""
