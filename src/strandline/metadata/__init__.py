"""The cluster's metadata: the records of `__cluster_metadata` and the image that they add up to."""
