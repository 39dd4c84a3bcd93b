"""The transactions of a history: producers, copiers and readers as load, what they did, and what the logs say of it."""
