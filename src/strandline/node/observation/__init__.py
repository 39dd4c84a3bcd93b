"""What can be seen of a node: live, read-only views of its parts, for judges, stories and all that is served over HTTP."""
