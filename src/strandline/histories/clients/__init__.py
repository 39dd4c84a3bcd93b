"""The clients of a history: producers, consumers, and those who administer, each on a host of its own."""
