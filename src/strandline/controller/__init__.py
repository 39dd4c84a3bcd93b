"""The controller's decisions: pure functions from the newest image and a request to records.

Nothing here changes anything: a decision becomes true when its records are committed and replayed.
"""
