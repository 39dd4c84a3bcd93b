"""What Fetch and its relatives share: sessions of consumers and followers, where a reader may read, and the reads."""
