"""Partition leaders that die, stop, stand still or hand over, and followers that do, under load."""

from __future__ import annotations

from strandline.histories.record_story import APART, FIVE, THREE, RecordStory, replicated


@replicated("chase of the leader")
async def chase(story: RecordStory) -> None:
    """Whoever leads a partition is killed, and the next one, and the next; each is started again while the chase goes on."""
    leader = await story.begin()
    for _ in range(4):
        story.cluster.kill(leader)
        await story.wait(0.1, 1.5)
        story.cluster.start(leader)
        leader = await story.led(0)
        await story.wait(0.0, 1.5)


@replicated("partition leader paused", (THREE, APART, FIVE))
async def leader_paused(story: RecordStory) -> None:
    """A leader stands still until others lead, and wakes up believing in itself: it acknowledges nothing, and cuts its log."""
    leader = await story.begin()
    for _ in range(2):
        story.cluster.pause(leader)
        following = await story.led(0, but=leader)
        await story.wait(0.0, 6.0)
        story.cluster.resume(leader)
        await story.wait(0.0, 1.0)
        await story.written(5)
        leader = following


@replicated("follower paused")
async def follower_paused(story: RecordStory) -> None:
    """A follower stands still: records wait for it until it is out of the ISR, and no longer; it comes back into it."""
    await story.begin()
    for _ in range(2):
        follower = story.chance.choice(story.followers_of(0))
        story.cluster.pause(follower)
        await story.wait(0.0, 2.0)
        await story.written(10)
        story.cluster.resume(follower)
        await story.wait(0.0, 1.0)
    await story.in_sync()


@replicated("broker paused for a moment")
async def paused_for_a_moment(story: RecordStory) -> None:
    """Brokers stand still for about as long as it takes to be fenced or to leave the ISR, two at a time now and then."""
    await story.begin()
    for _ in range(4):
        victims = story.chance.sample(story.brokers, story.chance.choice((1, 1, 2)))
        for victim in victims:
            story.cluster.pause(victim)
        await story.wait(0.5, 2.5)
        for victim in victims:
            story.cluster.resume(victim)
        await story.wait(0.0, 1.0)


@replicated("rolling restart of brokers", (THREE, APART, FIVE))
async def rolling_restart(story: RecordStory) -> None:
    """Each node stops in order, hands over what it leads, and comes back, in sync before the next one goes."""
    await story.begin()
    for node_id in list(story.cluster.members):
        await story.cluster.stop(node_id)
        await story.wait(0.0, 0.5)
        story.cluster.start(node_id)
        await story.in_sync()


@replicated("brokers stop in haste")
async def stop_in_haste(story: RecordStory) -> None:
    """Nodes stop in order, but nobody waits for them to be in sync again; one is killed meanwhile."""
    await story.begin()
    for _ in range(3):
        one, other = story.chance.sample(list(story.cluster.members), 2)
        await story.cluster.stop(one)
        if story.chance.random() < 0.5:
            story.cluster.kill(other)
        await story.wait(0.0, 0.7)
        story.cluster.start(one)
        await story.wait(0.0, 1.0)
        story.cluster.start(other)
        await story.wait(0.0, 1.0)


@replicated("all brokers killed")
async def all_killed(story: RecordStory) -> None:
    """Every process dies at once, or nearly; what they had written is in the page cache, and nothing is lost."""
    await story.begin()
    for _ in range(2):
        for node_id in story.chance.sample(list(story.cluster.members), len(story.cluster.members)):
            story.cluster.kill(node_id)
            await story.wait(0.0, story.chance.choice((0.0, 0.0, 0.6)))
        for node_id in story.chance.sample(list(story.cluster.members), len(story.cluster.members)):
            story.cluster.start(node_id)
            await story.wait(0.0, 0.7)
        await story.written(10)


@replicated("controller and leader killed", (THREE, APART, FIVE))
async def controller_and_leader(story: RecordStory) -> None:
    """The active controller and a partition leader die together, or the controller alone: then nobody should notice."""
    leader = await story.begin()
    for _ in range(3):
        controller = story.cluster.leader()
        victims = {node for node in (controller, story.chance.choice((leader, None))) if node is not None}
        story.cluster.kill(*sorted(victims))
        await story.wait(0.2, 2.0)
        story.cluster.start(*sorted(victims))
        leader = await story.led(0)
        await story.written(5)


@replicated(
    "preferred leaders", config={"leader.imbalance.check.interval.seconds": "1", "auto.leader.rebalance.enable": "true"}
)
async def preferred_leaders(story: RecordStory) -> None:
    """Leadership returns to the preferred replicas by itself, while some of them die again."""
    await story.begin()
    for _ in range(3):
        victim = story.chance.choice(story.brokers)
        story.cluster.kill(victim)
        await story.wait(0.2, 2.0)
        story.cluster.start(victim)
        await story.wait(0.0, 3.0)
    await story.in_sync()
    await story.cluster.until(
        lambda: all(story.state(n).leader == story.state(n).replicas[0] for n in range(3)), "preferred leaders lead"
    )
