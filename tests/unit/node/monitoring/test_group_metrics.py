"""The groups of a broker in numbers."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio

from tests.unit.node.coordinator.test_node_coordinates import SETTINGS, commit, found

from .conftest import Looked
from .test_metrics import samples

MANAGER, COORDINATOR = "kafka_coordinator_group_groupmetadatamanager", "kafka_server_group_coordinator_metrics"


def test_groups_offsets_and_loads(play):
    async def story(stage):
        metrics = Looked(stage).metrics()
        before = samples(metrics)
        assert before[f"{MANAGER}_numgroups",] == before[f"{COORDINATOR}_partition_load_total",] == 0
        await stage.create()
        await found(stage)
        for offset in range(3):
            assert await commit(stage, offset) == 0
        await asyncio.sleep(0.1)
        after = samples(metrics)
        assert after[f"{MANAGER}_numgroups",] == after[f"{MANAGER}_numoffsets",] == 1
        assert after[f"{MANAGER}_numgroupsempty",] == 1
        assert after[f"{MANAGER}_numgroupsstable",] == 0
        assert after[f"{COORDINATOR}_group_count", "protocol=classic"] == 1
        assert after[f"{COORDINATOR}_group_count", "protocol=consumer"] == 0
        assert after[f"{COORDINATOR}_consumer_group_count", "state=stable"] == 0
        assert after[f"{COORDINATOR}_num_partitions", "state=active"] == 4
        assert after[f"{COORDINATOR}_num_partitions", "state=loading"] == 0
        assert after[f"{COORDINATOR}_partition_load_total",] == 4
        assert after[f"{COORDINATOR}_offset_commit_total",] == 3

    play(story, **SETTINGS)
