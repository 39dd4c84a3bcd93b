"""The transaction coordinator: what one partition of `__transaction_state` knows of its transactional ids, and decides."""
