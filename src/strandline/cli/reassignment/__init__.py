"""Partitions moved to other brokers: plan, proposal, throttles and progress."""
