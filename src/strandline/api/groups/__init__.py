"""The way from an API to the coordinator of a group."""
