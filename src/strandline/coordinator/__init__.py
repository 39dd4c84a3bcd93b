"""What coordinators have in common, whatever they coordinate: records, results, timers, and what a shard is."""
