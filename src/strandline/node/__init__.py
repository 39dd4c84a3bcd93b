"""The asyncio shell: where the parts of a node meet, and where what they decided is done."""
