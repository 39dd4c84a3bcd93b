"""Histories: whole clusters of real nodes in the simulated world, under load and harm, judged. One seed is one history."""
