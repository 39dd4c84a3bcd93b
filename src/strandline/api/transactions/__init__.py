"""What the APIs of transactions share."""
