"""The configuration of topics, brokers and groups, and the reference of its keys."""
