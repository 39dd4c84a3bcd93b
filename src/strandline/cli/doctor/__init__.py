"""The checks of `doctor`: this machine, a cluster, its listeners and its groups."""
