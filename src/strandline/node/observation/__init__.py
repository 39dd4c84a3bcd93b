"""What can be seen of a node: live, read-only views of its parts, for judges, stories, `/replicas` and the metrics."""
