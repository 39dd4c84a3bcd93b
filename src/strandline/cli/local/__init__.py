"""A cluster of processes on this machine: starting, finding and stopping its nodes."""
