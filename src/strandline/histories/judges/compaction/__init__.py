"""Properties of compaction, judged when all faults are undone and all replicas have caught up."""
