"""The coordinators of a node: a runner for each partition of their topics that it leads."""
