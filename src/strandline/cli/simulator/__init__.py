"""Simulated histories and stories, played from the command line."""
