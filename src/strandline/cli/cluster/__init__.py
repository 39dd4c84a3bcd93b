"""A cluster as a whole: its id and nodes, its features, and the APIs that its brokers serve."""
