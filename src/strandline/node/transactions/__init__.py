"""Transactions between nodes: markers to the leaders of partitions, and their questions to coordinators."""
