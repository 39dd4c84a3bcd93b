"""Variants of a story: without a mechanism, or with a setting that gives up a guarantee.

Always true: a story declares the options it supports, and is never played with another one.
"""

from __future__ import annotations

import enum


class Option(enum.Enum):
    """Each as it is written on the command line, without the dashes."""

    WITHOUT_LEADER_EPOCHS = "without leader-epochs"
    WITHOUT_IDEMPOTENCE = "without idempotence"
    WITHOUT_HIGH_WATERMARK = "without high-watermark"
    WITHOUT_TRANSACTIONS = "without transactions"
    WITHOUT_EPOCH_BUMP = "without epoch-bump"
    WITHOUT_LAST_STABLE_OFFSET = "without last-stable-offset"
    WITHOUT_VERIFICATION = "without verification"
    ACKS_ONE = "acks 1"
    LAG_BY_MESSAGES = "lag-by messages"
    UNCLEAN = "unclean"

    @property
    def flag(self) -> str:
        return f"--{self.value}"

    @property
    def slug(self) -> str:
        """For the name of a file."""
        return self.value.replace(" ", "-")
