"""The stories, one file each."""
