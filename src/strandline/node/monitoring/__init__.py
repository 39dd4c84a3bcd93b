"""A node looked at from outside: metrics, events and its replicas' positions, over HTTP on a port of their own."""
