"""Topics: listing, creating, describing, altering and deleting them, and whether they can lose data."""
