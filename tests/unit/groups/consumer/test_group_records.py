"""A group of the consumer protocol that is deleted leaves nothing in the log:
every key that was written for it has a tombstone.
"""

# mypy: disable-error-code="union-attr"

from __future__ import annotations

import pytest

from strandline.groups import framing, group_deletion
from strandline.groups.consumer.group_records import group_tombstones

from .transcript import GROUP, Stage

KINDS = {
    "ConsumerGroupMetadataKey",
    "ConsumerGroupMemberMetadataKey",
    "ConsumerGroupTargetAssignmentMetadataKey",
    "ConsumerGroupTargetAssignmentMemberKey",
    "ConsumerGroupCurrentMemberAssignmentKey",
    "ConsumerGroupRegularExpressionKey",
}


def lived_in() -> Stage:
    """Members with names and with a pattern, one of them static;
    all gone again but for what the group keeps of itself.
    """
    stage = Stage()
    for line in (
        "topics t=3 u=2",
        "join a topics=t",
        "join b regex=t.* instance=i",
        "ack a",
        "ack b",
        "beat a topics=t,u",
    ):
        stage.perform(line)
    return stage


def newest(stage: Stage) -> dict[bytes, bytes | None]:
    """What compaction leaves of the log."""
    return dict(stage.driver.log)


def test_what_a_group_writes_has_all_kinds_of_keys() -> None:
    written = {type(framing.decode(key, value).key).__name__ for key, value in lived_in().driver.log}
    assert written >= KINDS


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_deleted_group_leaves_no_key_with_a_value(order: str) -> None:
    stage = lived_in()
    for name in order:
        stage.perform(f"leave {name} instance=i" if name == "b" else f"leave {name}")
    for record in group_deletion.delete(stage.driver.shard, GROUP, stage.driver.at):
        stage.driver.log.append(framing.encode(record))
    left = [framing.decode(key, value).key for key, value in newest(stage).items() if value is not None]
    assert left == []
    stage.driver.reload()
    assert GROUP not in stage.driver.shard.groups


def test_a_group_that_goes_with_its_members_leaves_no_key_with_a_value() -> None:
    """As when it becomes a classic group: whatever it has then goes in one batch."""
    stage = lived_in()
    group = stage.group
    tombstones = group_tombstones(GROUP, group.members, group.resolved_regular_expressions)
    for record in tombstones:
        stage.driver.log.append(framing.encode(record))
    assert [key for key, value in newest(stage).items() if value is not None] == []
    stage.driver.reload()
    assert GROUP not in stage.driver.shard.groups
