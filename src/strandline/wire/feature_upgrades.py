"""The direction in which UpdateFeatures (57) may move a feature's level.

Always true: the numbers are those that travel.
"""

from __future__ import annotations

import enum


class FeatureUpgradeType(enum.IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3
