"""Properties of compaction, judged when all harm is undone and all replicas are level."""
