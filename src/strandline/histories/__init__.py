"""Histories: whole clusters of real nodes in the simulated world, under load and faults, judged. One seed is one
history."""
