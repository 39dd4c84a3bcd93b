"""Elections of partition leaders that a user asks for."""
