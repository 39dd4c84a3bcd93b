"""The group coordinator of a node: a runner for each partition of `__consumer_offsets` that it leads."""
