"""A structlog logger; it belongs to its node."""

from __future__ import annotations

from typing import Any

Logger = Any
