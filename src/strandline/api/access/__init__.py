"""What an API reaches of its node: small typed parts, which the node provides and `NodeContext` holds."""
