"""The simulated world: virtual time, a network in memory, disks that lose what was not synced, clocks that drift.

The same node runs here and in production; only the event loop, the disk and the clock differ.
"""
