"""The real world: files, the system's clocks, uvloop."""
