"""The compacted topic of a history: who writes it, what must be left of it, and what cleaning did."""
