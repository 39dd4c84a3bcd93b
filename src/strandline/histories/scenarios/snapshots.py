"""Snapshots taken all the time, by every node; followers and brokers that are so far behind that they must fetch one."""

from __future__ import annotations

from strandline.histories.scenario import APART, ONE_BROKER, THREE, Story, scenario

OFTEN = {
    "metadata.log.max.record.bytes.between.snapshots": "600",
    "metadata.log.max.snapshot.interval.ms": "1500",
    "internal.metadata.log.segment.bytes": "1500",
    "metadata.log.segment.ms": "400",
    "metadata.max.retention.bytes": "1500",
    "metadata.max.retention.ms": "1000",
}


@scenario("snapshots all the time", (THREE, APART), config=OFTEN)
async def snapshots_all_the_time(story: Story) -> None:
    """Logs begin behind snapshots; nodes restart from a snapshot and what follows it, after kills and power losses."""
    await story.begin(10)
    for _ in range(3):
        victim = story.chance.choice(list(story.cluster.members))
        (story.cluster.kill if story.chance.random() < 0.5 else story.cluster.power_loss)(victim)
        await story.wait(0.1, 1.5)
        story.cluster.start(victim)
        await story.progress(6)
    await story.cluster.until(
        lambda: any((seen := member.look()) and seen.log_start_offset > 0 for member in story.cluster.members.values()),
        "a log begins behind a snapshot",
    )


@scenario("far behind", (THREE, ONE_BROKER), config=OFTEN)
async def far_behind(story: Story) -> None:
    """A node is away until the others' logs begin behind its end: it has to fetch a snapshot."""
    leader = await story.begin(10)
    victim = story.chance.choice([node_id for node_id in story.cluster.members if node_id != leader])
    seen = story.cluster.seen(victim)
    end_offset = seen.log_end_offset if seen is not None else 0
    story.cluster.kill(victim)
    await _until_forgotten(story, end_offset)
    story.cluster.start(victim)
    if story.chance.random() < 0.5:
        await story.wait(0.0, 0.1)
        (story.cluster.kill if story.chance.random() < 0.5 else story.cluster.power_loss)(victim)
        story.cluster.start(victim)
    await story.caught_up(victim)


@scenario("the leader goes while a snapshot is fetched", (THREE, ONE_BROKER), config=OFTEN)
async def leader_goes_meanwhile(story: Story) -> None:
    """Whoever was fetching a snapshot goes on with the next leader."""
    leader = await story.begin(10)
    victim = story.chance.choice([node_id for node_id in story.cluster.members if node_id != leader])
    seen = story.cluster.seen(victim)
    end_offset = seen.log_end_offset if seen is not None else 0
    story.cluster.kill(victim)
    await _until_forgotten(story, end_offset)
    leader = await story.leader()
    story.cluster.start(victim)
    await story.wait(0.0, 0.05)
    story.cluster.kill(leader)
    await story.wait(0.0, 1.0)
    story.cluster.start(leader)
    await story.caught_up(victim)


async def _until_forgotten(story: Story, end_offset: int) -> None:
    """Wait until every node that is up has a log that begins behind this offset."""
    await story.cluster.until(
        lambda: all(
            (seen := story.cluster.seen(node_id)) is not None and seen.log_start_offset > end_offset
            for node_id in story.cluster.up
        ),
        f"logs begin behind {end_offset}",
        60.0,
    )
