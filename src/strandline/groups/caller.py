"""The member of a group, or the tool, that sent a request.

Always true: it is what the request's connection says, not what the request does.
"""

from __future__ import annotations

from typing import NamedTuple


class Caller(NamedTuple):
    """Who asks, in which version of the request."""

    client_id: str
    client_host: str
    version: int
