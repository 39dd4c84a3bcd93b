"""Groups whose members assign partitions among themselves: they join, one of them leads, and a generation begins."""
