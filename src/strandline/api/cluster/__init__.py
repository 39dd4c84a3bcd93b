"""The cluster as clients are shown it: brokers, leaders, topics."""
