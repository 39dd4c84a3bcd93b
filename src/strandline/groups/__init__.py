"""Group coordination without I/O: what the members of a group, and their offsets, come to."""
