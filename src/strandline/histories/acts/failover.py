"""Partition leaders that die, stop, stand still or hand over, and followers that do, under load."""

from __future__ import annotations

from strandline.histories.acts.act import act, replicated
from strandline.histories.acts.scene import Scene


@act("chase of the leader", replicated)
async def chase(scene: Scene) -> None:
    """Whoever leads a partition is killed, and the next one, and the next; each is started again while the chase goes on."""
    for _ in range(3):
        leader = scene.leader()
        scene.faults.kill(leader)
        await scene.wait(0.1, 1.5)
        scene.start(leader)
        await scene.another_leader(leader)
        await scene.wait(0.0, 1.0)


@act("partition leader paused", replicated)
async def leader_paused(scene: Scene) -> None:
    """A leader stands still until others lead, and wakes up believing in itself: it acknowledges nothing, and cuts its log."""
    number = scene.any_partition()
    leader = scene.leader(number)
    if scene.faults.pause(leader):
        await scene.another_leader(leader, number)
    await scene.wait(0.0, 5.0)
    scene.cluster.resume(leader)
    await scene.wait(0.0, 1.0)
    await scene.written()


@act("follower paused", replicated)
async def follower_paused(scene: Scene) -> None:
    """A follower stands still: records wait for it until it is out of the ISR, and no longer; it comes back into it."""
    number = scene.any_partition()
    follower = scene.chance.choice(scene.followers(number))
    if scene.faults.pause(follower):
        await scene.out_of_sync(follower, scene.leader(number), number)
        await scene.written(10)
    scene.cluster.resume(follower)
    await scene.whole()


@act("brokers paused for a moment", replicated)
async def paused_for_a_moment(scene: Scene) -> None:
    """Brokers stand still for about as long as it takes to be fenced or to leave the ISR, two at a time now and then."""
    for _ in range(2):
        victims = scene.chance.sample(scene.brokers, scene.chance.choice((1, 1, 2)))
        for victim in victims:
            scene.faults.pause(victim)
        await scene.wait(0.5, 1.3 * scene.timers.session_s)
        for victim in victims:
            scene.cluster.resume(victim)
        await scene.wait(0.0, 1.0)


@act("long pauses")
async def long_pauses(scene: Scene) -> None:
    """Any node stands still for up to 15 seconds, clients or not."""
    for _ in range(2):
        victim = scene.chance.choice(scene.nodes)
        scene.faults.pause(victim)
        await scene.wait(0.5, 15.0)
        scene.cluster.resume(victim)
        await scene.wait(0.0, 2.0)


@act("nodes stop in haste", replicated)
async def stop_in_haste(scene: Scene) -> None:
    """Nodes stop in order, but nobody waits for them to be in sync again; one is killed meanwhile."""
    for _ in range(2):
        one, other = scene.chance.sample(scene.nodes, 2)
        await scene.faults.stop(one)
        if scene.either():
            scene.faults.kill(other)
        await scene.wait(0.0, 0.7)
        scene.start(one)
        await scene.wait(0.0, 1.0)
        scene.start(other)
        await scene.wait(0.0, 1.0)


@act("all killed")
async def all_killed(scene: Scene) -> None:
    """Every process dies at once, or nearly; what they had written is in the page cache, and nothing is lost."""
    for node_id in scene.chance.sample(scene.nodes, len(scene.nodes)):
        scene.faults.kill(node_id)
        await scene.wait(0.0, scene.chance.choice((0.0, 0.0, 0.6)))
    for node_id in scene.chance.sample(scene.nodes, len(scene.nodes)):
        scene.start(node_id)
        await scene.wait(0.0, 0.7)
    await scene.written()


@act("controller and partition leader killed", replicated)
async def controller_and_leader(scene: Scene) -> None:
    """The active controller and a partition leader die together, or the controller alone: then nobody should notice."""
    for _ in range(2):
        leader, controller = scene.leader(), scene.controller()
        victims = sorted({controller, leader} if scene.either() else {controller})
        scene.faults.kill(*victims)
        await scene.wait(0.2, 2.0)
        scene.start(*victims)
        await scene.until(lambda: scene.cluster.leader() is not None)
        await scene.written()


@act("preferred leaders", lambda setting: replicated(setting) and setting.rebalances)
async def preferred_leaders(scene: Scene) -> None:
    """Leadership returns to the preferred replicas by itself, while some of them die again."""
    for _ in range(2):
        victim = scene.leader(scene.any_partition())
        scene.faults.kill(victim)
        await scene.wait(0.2, 2.0)
        scene.start(victim)
        await scene.wait(0.0, 3.0)
    await scene.whole()
    await scene.until(
        lambda: all(scene.state(n).leader == scene.state(n).replicas[0] for n in range(scene.partitions)), 15.0
    )
