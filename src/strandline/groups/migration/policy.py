"""`group.consumer.migration.policy`: which way groups may move between the protocols while they have members.

Always true: a group without members may always become one of the other protocol.
"""

from __future__ import annotations

import enum

from strandline.config.node import NodeConfig


class MigrationPolicy(enum.Enum):
    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        """A classic group becomes one of the consumer protocol when the first such member joins."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        """A group becomes classic again when the last member of the consumer protocol leaves."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


def policy(config: NodeConfig) -> MigrationPolicy:
    return MigrationPolicy(config.group_consumer_migration_policy.lower())
