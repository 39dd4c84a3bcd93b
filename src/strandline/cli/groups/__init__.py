"""Consumer groups: their members, offsets and lag, and resetting offsets."""
