"""Log dirs and the files in them: formatting and printing."""
