"""What the APIs that change the cluster share: decisions with several parts, and configuration resources."""
