"""Links between brokers that are cut, one way or both, slow, or reset all the time, under load."""

from __future__ import annotations

from strandline.histories.nemeses.context import NemesisContext
from strandline.histories.nemeses.nemesis import apart, nemesis, replicated
from strandline.histories.shape import host

RESETS_PER_S = 100


@nemesis("partition leader cut off", replicated)
async def leader_cut_off(context: NemesisContext) -> None:
    """A leader is alone, or alone with its clients: it can't commit, the others elect; afterwards the logs match."""
    number = context.any_partition()
    leader = context.leader(number)
    others = context.others(context.nodes, leader)
    if context.faults.isolate(leader) if context.either() else context.faults.split([leader], others):
        await context.another_leader(leader, number)
    await context.wait(0.0, 3.0)
    context.heal_network()
    await context.written()


@nemesis("leader cut off from its followers", replicated)
async def cut_off_from_followers(context: NemesisContext) -> None:
    """A leader does not reach its followers, but the controller: it takes them out of the ISR, and stops below the
    minimum."""
    number = context.any_partition()
    leader = context.leader(number)
    followers = context.followers(number)
    for follower in followers[: context.chance.choice((1, 2))]:
        if context.either():
            context.faults.cut(leader, follower)
        elif context.either():
            context.faults.cut_one_way(leader, follower)
        else:
            context.faults.cut_one_way(follower, leader)
    await context.wait(1.0, 1.5 * context.timers.lag_s)
    if context.chance.random() < 0.4:
        context.faults.kill(leader)
    await context.wait(0.0, 2.0)
    context.heal_network()
    context.start(leader)
    await context.written()


@nemesis("leader cut off from the controllers", apart)
async def cut_off_from_controllers(context: NemesisContext) -> None:
    """A leader reaches its followers and not the controllers, one way or both: it is fenced, and others lead."""
    number = context.any_partition()
    leader = context.leader(number)
    both_ways = context.either()
    for controller in context.setting.shape.controllers:
        (context.faults.cut if both_ways else context.faults.cut_one_way)(leader, controller)
    await context.another_leader(leader, number, 1.5 * context.timers.session_s)
    await context.wait(0.0, 2.0)
    context.heal_network()
    await context.written()


@nemesis("cuts at random", lambda setting: len(setting.shape.ids) >= 3)
async def cuts_at_random(context: NemesisContext) -> None:
    """Any link is cut and healed again and again."""
    for _ in range(3):
        for _ in range(context.chance.choice((1, 2, 3))):
            one, other = context.chance.sample(context.nodes, 2)
            (context.faults.cut if context.either() else context.faults.cut_one_way)(one, other)
        await context.wait(0.2, 4.0)
        context.heal_network()
        await context.wait(0.0, 1.0)


@nemesis("connections reset")
async def connections_reset(context: NemesisContext) -> None:
    """Connections between nodes and to clients break after any prefix of their bytes: replies are lost, requests
    repeated."""
    hosts = [*map(host, context.nodes), *context.load.hosts]
    for _ in range(10):
        one, other = context.chance.choice(hosts[: len(context.nodes)]), context.chance.choice(hosts)
        if other in context.load.hosts and context.either():
            context.faults.lose_reply(one, other)
        else:
            context.faults.reset(one, other)
        await context.wait(0.0, 0.4)


@nemesis("a storm of resets")
async def reset_storm(context: NemesisContext) -> None:
    """A hundred times a second some connection breaks: requests are sent again and again, and are done once."""
    hosts = [*map(host, context.nodes), *context.load.hosts]
    for _ in range(3):
        is_on = context.faults.inject("reset storm", f"{RESETS_PER_S} a second", lambda: None)
        for _ in range(RESETS_PER_S // 2):
            one, other = context.chance.choice(hosts[: len(context.nodes)]), context.chance.choice(hosts)
            if is_on:
                context.cluster.world.network.reset_connections(one, other)
            await context.wait(0.0, 2 / RESETS_PER_S)
        await context.wait(0.0, 3.0)


@nemesis("late requests", replicated)
async def late_requests(context: NemesisContext) -> None:
    """What a client or a follower gave up waiting for arrives after what it sent on its next connection: it is done
    once."""
    hosts = [*map(host, context.nodes), *context.load.hosts]
    for _ in range(5):
        one, other = host(context.leader(context.any_partition())), context.chance.choice(hosts)
        if one != other:
            context.faults.delay_bytes(one, other, context.chance.uniform(1.0, 8.0))
        await context.wait(0.2, 3.0)
    await context.written()


@nemesis("slow links", replicated)
async def slow_links(context: NemesisContext) -> None:
    """Links that take up to 100 ms and carry 3 Mbit/s, with long delays now and then: everything goes on, only
    later."""
    for one in context.nodes:
        for other in context.nodes:
            if one < other and context.chance.random() < 0.6:
                context.faults.slow_link(host(one), host(other))
    leader = context.leader()
    context.faults.kill(leader)
    await context.wait(0.5, 2.0)
    context.start(leader)
    await context.written(10)
