"""Transactions: what there is, what producers have open at partitions, and ending what hangs."""
