"""The one thing that may go wrong with bytes from a peer."""

from __future__ import annotations


class MalformedRequest(Exception):
    """These bytes are not the message they claim to be, or cost more than we grant. Says which field, and why."""
