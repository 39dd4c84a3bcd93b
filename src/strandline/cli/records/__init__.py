"""Records written to a topic and read from it, as lines of text."""
