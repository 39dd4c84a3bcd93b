"""Compaction: a log that keeps, for each key, at least the last value. Cleaned beside the event loop, then swapped in."""
