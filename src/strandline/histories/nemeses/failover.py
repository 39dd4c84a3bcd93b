"""Partition leaders that die, stop, stand still or hand over, and followers that do, under load."""

from __future__ import annotations

from strandline.histories.nemeses.context import NemesisContext
from strandline.histories.nemeses.nemesis import nemesis, replicated


@nemesis("chase of the leader", replicated)
async def chase(context: NemesisContext) -> None:
    """The leader of a partition is killed, and the next one, and the next; each is started again while the chase
    goes on."""
    for _ in range(3):
        leader = context.leader()
        context.faults.kill(leader)
        await context.wait(0.1, 1.5)
        context.start(leader)
        await context.another_leader(leader)
        await context.wait(0.0, 1.0)


@nemesis("partition leader paused", replicated)
async def leader_paused(context: NemesisContext) -> None:
    """A leader stands still until others lead, and wakes up believing in itself: it acknowledges nothing, and cuts
    its log."""
    number = context.any_partition()
    leader = context.leader(number)
    if context.faults.pause(leader):
        await context.another_leader(leader, number)
    await context.wait(0.0, 5.0)
    context.cluster.resume(leader)
    await context.wait(0.0, 1.0)
    await context.written()


@nemesis("follower paused", replicated)
async def follower_paused(context: NemesisContext) -> None:
    """A follower stands still: records wait for it until it is out of the ISR, and no longer; it comes back into it."""
    number = context.any_partition()
    follower = context.chance.choice(context.followers(number))
    if context.faults.pause(follower):
        await context.out_of_sync(follower, context.leader(number), number)
        await context.written(10)
    context.cluster.resume(follower)
    await context.whole()


@nemesis("brokers paused for a moment", replicated)
async def paused_for_a_moment(context: NemesisContext) -> None:
    """Brokers stand still for about as long as it takes to be fenced or to leave the ISR, two at a time now and
    then."""
    for _ in range(2):
        victims = context.chance.sample(context.brokers, context.chance.choice((1, 1, 2)))
        for victim in victims:
            context.faults.pause(victim)
        await context.wait(0.5, 1.3 * context.timers.session_s)
        for victim in victims:
            context.cluster.resume(victim)
        await context.wait(0.0, 1.0)


@nemesis("long pauses")
async def long_pauses(context: NemesisContext) -> None:
    """Any node stands still for up to 15 seconds, clients or not."""
    for _ in range(2):
        victim = context.chance.choice(context.nodes)
        context.faults.pause(victim)
        await context.wait(0.5, 15.0)
        context.cluster.resume(victim)
        await context.wait(0.0, 2.0)


@nemesis("nodes stop in haste", replicated)
async def stop_in_haste(context: NemesisContext) -> None:
    """Nodes stop in order, without waiting for each other to be in sync again; one is killed meanwhile."""
    for _ in range(2):
        one, other = context.chance.sample(context.nodes, 2)
        await context.faults.stop(one)
        if context.either():
            context.faults.kill(other)
        await context.wait(0.0, 0.7)
        context.start(one)
        await context.wait(0.0, 1.0)
        context.start(other)
        await context.wait(0.0, 1.0)


@nemesis("all killed")
async def all_killed(context: NemesisContext) -> None:
    """Every process dies at once, or nearly; what they had written is in the page cache, and nothing is lost."""
    for node_id in context.chance.sample(context.nodes, len(context.nodes)):
        context.faults.kill(node_id)
        await context.wait(0.0, context.chance.choice((0.0, 0.0, 0.6)))
    for node_id in context.chance.sample(context.nodes, len(context.nodes)):
        context.start(node_id)
        await context.wait(0.0, 0.7)
    await context.written()


@nemesis("controller and partition leader killed", replicated)
async def controller_and_leader(context: NemesisContext) -> None:
    """The active controller and a partition leader die together, or the controller alone: then no client should
    notice."""
    for _ in range(2):
        leader, controller = context.leader(), context.controller()
        victims = sorted({controller, leader} if context.either() else {controller})
        context.faults.kill(*victims)
        await context.wait(0.2, 2.0)
        context.start(*victims)
        await context.until(lambda: context.cluster.leader() is not None)
        await context.written()


@nemesis("preferred leaders", lambda setting: replicated(setting) and setting.rebalances)
async def preferred_leaders(context: NemesisContext) -> None:
    """Leadership returns to the preferred replicas by itself, while some of them die again."""
    for _ in range(2):
        victim = context.leader(context.any_partition())
        context.faults.kill(victim)
        await context.wait(0.2, 2.0)
        context.start(victim)
        await context.wait(0.0, 3.0)
    await context.whole()
    await context.until(
        lambda: all(context.state(n).leader == context.state(n).replicas[0] for n in range(context.partitions)), 15.0
    )
