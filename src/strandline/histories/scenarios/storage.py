"""Disks: power losses that tear what was not synced, a voter that loses all it had, disks that are slow or fail."""

from __future__ import annotations

from strandline.histories.judges import MajorityReachedHighWatermark, MonotonicEpoch
from strandline.histories.member import METADATA_DIR
from strandline.histories.scenario import APART, FIVE, THREE, Story, scenario
from strandline.sim.faults import Fault


@scenario(
    "one voter loses its disk",
    (THREE, FIVE),
    # The protocol itself can't keep these when what a voter had promised is gone.
    without=frozenset({MonotonicEpoch, MajorityReachedHighWatermark}),
)
async def disk_lost(story: Story) -> None:
    """A voter comes back with an empty disk, once the others have a leader and all that was committed: nothing is lost."""
    await story.begin()
    victim = story.chance.choice(story.voters)
    story.cluster.wipe(victim)
    others = [voter for voter in story.voters if voter != victim]
    leader = await story.leader(other_than=victim)
    await story.caught_up(*others)
    await story.progress(3, among=others)
    story.cluster.start(victim)
    await story.caught_up(victim)
    assert leader != victim
    await story.progress(5)


@scenario("power losses", (THREE, APART))
async def power_losses(story: Story) -> None:
    """Hosts go dark, one at a time, with whatever their disks had not synced."""
    await story.begin(5)
    for _ in range(4):
        victim = story.chance.choice(list(story.cluster.members))
        story.cluster.power_loss(victim)
        await story.wait(0.05, 1.5)
        story.cluster.start(victim)
        await story.wait(0.0, 1.0)


@scenario("leader loses power", (THREE, APART, FIVE))
async def leader_loses_power(story: Story) -> None:
    """The leader goes dark with what it has just appended: nobody is told, and only what was synced is left."""
    leader = await story.begin(5)
    for _ in range(3):
        story.cluster.power_loss(leader)
        following = await story.leader(other_than=leader)
        story.cluster.start(leader)
        await story.progress(3)
        leader = following


@scenario("all lose power", (THREE, APART))
async def all_lose_power(story: Story) -> None:
    """The whole cluster goes dark at once, twice: what was acknowledged is on a majority of the disks."""
    await story.begin(5)
    for _ in range(2):
        story.cluster.power_loss(*story.cluster.members)
        await story.wait(0.01, 0.5)
        story.cluster.start()
        await story.leader(within_s=30.0)
        await story.progress(3)


@scenario("killed, then without power", (THREE, APART))
async def killed_then_without_power(story: Story) -> None:
    """A process dies and is started again, and then its host goes dark: what only the page cache had is gone."""
    await story.begin(5)
    for _ in range(3):
        victims = story.chance.sample(story.voters, story.chance.choice((1, 2)))
        story.cluster.kill(*victims)
        await story.wait(0.0, 0.1)
        story.cluster.start(*victims)
        await story.wait(0.0, 0.5)
        story.cluster.power_loss(*victims)
        await story.wait(0.0, 0.5)
        story.cluster.start(*victims)
        await story.wait(0.0, 1.0)


@scenario("slow disks", (THREE, APART))
async def slow_disks(story: Story) -> None:
    """Some disks take a hundred times as long, the leader's among them; a power loss hits one of them."""
    leader = await story.begin(5)
    slow = {leader, story.chance.choice(story.voters)}
    for node_id in sorted(slow):
        story.cluster.slow_disk(node_id, story.chance.choice((20, 100)))
    await story.progress(3)
    victim = story.chance.choice(sorted(slow))
    story.cluster.power_loss(victim)
    await story.wait(0.1, 1.0)
    story.cluster.start(victim)
    await story.progress(3)


@scenario("a disk fails", (THREE, APART))
async def disk_fails(story: Story) -> None:
    """The metadata log of one voter can't be written or synced any more: that node ends, the others go on."""
    await story.begin(5)
    victim = story.cluster.members[story.chance.choice(story.voters)]
    story.cluster.break_disk(
        victim.id, METADATA_DIR, story.chance.choice((Fault.SYNC_ERROR, Fault.WRITE_ERROR, Fault.FULL))
    )
    await story.cluster.until(lambda: victim.failed is not None, f"{victim.name} gives up", 30.0)
    others = [voter for voter in story.voters if voter != victim.id]
    await story.progress(5, among=others)
    story.cluster.repair_disk(victim.id)
