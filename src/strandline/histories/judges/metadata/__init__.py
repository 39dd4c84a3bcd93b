"""Properties of the cluster's metadata: of each committed image, and of one after the other."""
