"""What the nodes of a cluster report over HTTP: events and replicas, side by side."""
