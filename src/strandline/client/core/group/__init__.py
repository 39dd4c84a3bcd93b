"""Membership of a consumer group without I/O: who coordinates, joining in either protocol, assignments, commits.

Always true: nothing here waits, reads a clock or draws randomness that was not given to it.
"""
