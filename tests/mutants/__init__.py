"""The judges can fail: the code is broken on purpose, one rule of the protocol at a time, and has to be caught."""
