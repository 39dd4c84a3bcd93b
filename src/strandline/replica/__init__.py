"""Replicas of partitions: who has how much of which log, and who waits for it."""
