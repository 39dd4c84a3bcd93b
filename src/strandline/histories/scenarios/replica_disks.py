"""Disks of brokers: power losses with and without `flush.messages`, disks that fill up, fail, tear or rot, under load."""

from __future__ import annotations

from strandline.histories.member import LOG_DIR
from strandline.histories.record_story import APART, FIVE, THREE, RecordStory, replicated
from strandline.histories.replica_sight import Loss
from strandline.sim.faults import Fault

OTHER_DIR = "/other"


@replicated("brokers lose power", (THREE, APART, FIVE))
async def brokers_lose_power(story: RecordStory) -> None:
    """One broker at a time goes dark with what only its page cache had: it was not alone, and nothing is lost (KIP-966)."""
    leader = await story.begin()
    for _ in range(4):
        victim = story.chance.choice((leader, story.chance.choice(story.brokers)))
        story.cluster.power_loss(victim)
        await story.wait(0.05, 2.5)
        story.cluster.start(victim)
        await story.in_sync()
        leader = await story.led(0)


@replicated("back without its tail", (APART,))
async def back_without_its_tail(story: RecordStory) -> None:
    """A broker that lost power comes back and reaches the controller, but no leader: nobody takes it for what it was."""
    await story.begin()
    for _ in range(4):
        victim = story.chance.choice(story.brokers)
        others = [broker for broker in story.brokers if broker != victim]
        story.cluster.power_loss(victim)
        await story.wait(0.01, story.chance.choice((0.1, 2.0)))
        story.cluster.split([victim], others)
        story.cluster.start(victim)
        await story.wait(0.05, 1.0)
        story.cluster.heal_network()
        await story.in_sync()


@replicated("one lossy restart below the minimum", (THREE, APART))
async def lossy_below_minimum(story: RecordStory) -> None:
    """Replicas leave until too few are in sync, and one of those that left comes back without what was not synced."""
    await story.begin()
    for _ in range(2):
        one, other, last = story.chance.sample([1, 2, 3], 3)
        story.cluster.power_loss(one)
        await story.wait(0.0, 2.5)
        await story.cluster.stop(other)
        await story.wait(0.0, 2.5)
        await story.cluster.stop(last)
        await story.wait(0.0, 1.0)
        story.cluster.start(one)
        await story.wait(0.0, 2.0)
        for node_id in story.chance.sample([other, last], 2):
            story.cluster.start(node_id)
            await story.wait(0.0, 2.0)
        story.cluster.start()
        await story.in_sync()


@replicated("whole cluster without power", (THREE, APART), may_lose=Loss.UNSYNCED)
async def whole_cluster(story: RecordStory) -> None:
    """All go dark at once: a synced topic loses nothing; another one loses at most what was on no device, and its logs agree."""
    await story.begin()
    for _ in range(2):
        story.cluster.power_loss(*story.cluster.members)
        await story.wait(0.01, 0.5)
        for node_id in story.chance.sample(list(story.cluster.members), len(story.cluster.members)):
            story.cluster.start(node_id)
            await story.wait(0.0, story.chance.choice((0.0, 1.0)))
        await story.written(10)


@replicated("killed, then dark", (THREE, APART), may_lose=Loss.UNSYNCED)
async def killed_then_dark(story: RecordStory) -> None:
    """Processes die and start again, and then their hosts go dark: what a replica vouched for was on its device."""
    await story.begin()
    for _ in range(3):
        victims = story.chance.sample(story.brokers, story.chance.choice((1, 2, 3)))
        story.cluster.kill(*victims)
        await story.wait(0.0, 0.3)
        story.cluster.start(*victims)
        await story.wait(0.0, 1.0)
        story.cluster.power_loss(*victims)
        await story.wait(0.0, 0.5)
        story.cluster.start(*victims)
        await story.wait(0.0, 1.0)


@replicated("a log dir fails", (THREE, APART), config={"log.dirs": f"{LOG_DIR},{OTHER_DIR}"})
async def log_dir_fails(story: RecordStory) -> None:
    """One of two log dirs of a broker is full, or can't be written or synced: its replicas go offline, and others lead."""
    await story.begin()
    for _ in range(2):
        victim = story.chance.choice(story.brokers)
        fault = story.chance.choice((Fault.FULL, Fault.SYNC_ERROR, Fault.WRITE_ERROR, Fault.READ_ONLY))
        story.cluster.break_disk(victim, OTHER_DIR, fault)
        await story.written(20)
        await story.wait(0.0, 3.0)
        story.chance.choice((story.cluster.kill, story.cluster.power_loss))(victim)
        story.cluster.repair_disk(victim)
        story.cluster.start(victim)
        await story.in_sync()


@replicated(
    "unclean elections", (THREE, APART), may_lose=Loss.ANYTHING, config={"unclean.leader.election.enable": "true"}
)
async def unclean(story: RecordStory) -> None:
    """Whoever is there may lead: records may be lost, but never do two replicas end with different ones."""
    await story.begin()
    for _ in range(3):
        order = story.chance.sample(story.brokers, len(story.brokers))
        for node_id in order:
            story.chance.choice((story.cluster.kill, story.cluster.power_loss))(node_id)
            await story.wait(0.0, 2.0)
        for node_id in story.chance.sample(order, len(order)):
            story.cluster.start(node_id)
            await story.wait(0.0, 1.5)


@replicated("slow and failing disks", (THREE, APART))
async def slow_disks(story: RecordStory) -> None:
    """Disks take up to a hundred times as long; a power loss hits one of the slow ones."""
    await story.begin()
    for _ in range(2):
        slow = story.chance.sample(story.brokers, 2)
        for node_id in slow:
            story.cluster.slow_disk(node_id, story.chance.choice((20, 100)))
        await story.wait(0.5, 2.0)
        story.cluster.power_loss(slow[0])
        await story.wait(0.0, 1.0)
        story.cluster.start(slow[0])
        await story.in_sync()
        for node_id in slow:
            story.cluster.repair_disk(node_id)
