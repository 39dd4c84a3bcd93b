"""What the requests of the quorum share."""
