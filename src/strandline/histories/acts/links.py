"""Links between brokers that are cut, one way or both, slow, or reset all the time, under load."""

from __future__ import annotations

from strandline.histories.acts.act import act, apart, replicated
from strandline.histories.acts.scene import Scene
from strandline.histories.shape import host

RESETS_PER_S = 100


@act("partition leader cut off", replicated)
async def leader_cut_off(scene: Scene) -> None:
    """A leader is alone, or alone with its clients: it can't commit, the others elect; afterwards the logs match."""
    number = scene.any_partition()
    leader = scene.leader(number)
    others = scene.others(scene.nodes, leader)
    if scene.faults.isolate(leader) if scene.either() else scene.faults.split([leader], others):
        await scene.another_leader(leader, number)
    await scene.wait(0.0, 3.0)
    scene.heal_network()
    await scene.written()


@act("leader cut off from its followers", replicated)
async def cut_off_from_followers(scene: Scene) -> None:
    """A leader does not reach its followers, but the controller: it takes them out of the ISR, and stops below the minimum."""
    number = scene.any_partition()
    leader = scene.leader(number)
    followers = scene.followers(number)
    for follower in followers[: scene.chance.choice((1, 2))]:
        if scene.either():
            scene.faults.cut(leader, follower)
        elif scene.either():
            scene.faults.cut_one_way(leader, follower)
        else:
            scene.faults.cut_one_way(follower, leader)
    await scene.wait(1.0, 1.5 * scene.timers.lag_s)
    if scene.chance.random() < 0.4:
        scene.faults.kill(leader)
    await scene.wait(0.0, 2.0)
    scene.heal_network()
    scene.start(leader)
    await scene.written()


@act("leader cut off from the controllers", apart)
async def cut_off_from_controllers(scene: Scene) -> None:
    """A leader reaches its followers and not the controllers, one way or both: it is fenced, and others lead."""
    number = scene.any_partition()
    leader = scene.leader(number)
    both_ways = scene.either()
    for controller in scene.setting.shape.controllers:
        (scene.faults.cut if both_ways else scene.faults.cut_one_way)(leader, controller)
    await scene.another_leader(leader, number, 1.5 * scene.timers.session_s)
    await scene.wait(0.0, 2.0)
    scene.heal_network()
    await scene.written()


@act("cuts at random", lambda setting: len(setting.shape.ids) >= 3)
async def cuts_at_random(scene: Scene) -> None:
    """Any link is cut and healed again and again."""
    for _ in range(3):
        for _ in range(scene.chance.choice((1, 2, 3))):
            one, other = scene.chance.sample(scene.nodes, 2)
            (scene.faults.cut if scene.either() else scene.faults.cut_one_way)(one, other)
        await scene.wait(0.2, 4.0)
        scene.heal_network()
        await scene.wait(0.0, 1.0)


@act("connections reset")
async def connections_reset(scene: Scene) -> None:
    """Connections between nodes and to clients break after any prefix of their bytes: replies are lost, requests repeated."""
    hosts = [*map(host, scene.nodes), *scene.load.hosts]
    for _ in range(10):
        one, other = scene.chance.choice(hosts[: len(scene.nodes)]), scene.chance.choice(hosts)
        if other in scene.load.hosts and scene.either():
            scene.faults.lose_reply(one, other)
        else:
            scene.faults.reset(one, other)
        await scene.wait(0.0, 0.4)


@act("a storm of resets")
async def reset_storm(scene: Scene) -> None:
    """A hundred times a second some connection breaks: requests are sent again and again, and are done once."""
    hosts = [*map(host, scene.nodes), *scene.load.hosts]
    for _ in range(3):
        is_on = scene.faults.inject("reset storm", f"{RESETS_PER_S} a second", lambda: None)
        for _ in range(RESETS_PER_S // 2):
            one, other = scene.chance.choice(hosts[: len(scene.nodes)]), scene.chance.choice(hosts)
            if is_on:
                scene.cluster.world.network.reset_connections(one, other)
            await scene.wait(0.0, 2 / RESETS_PER_S)
        await scene.wait(0.0, 3.0)


@act("late requests", replicated)
async def late_requests(scene: Scene) -> None:
    """What a client or a follower gave up waiting for arrives after what it sent on its next connection: it is done once."""
    hosts = [*map(host, scene.nodes), *scene.load.hosts]
    for _ in range(5):
        one, other = host(scene.leader(scene.any_partition())), scene.chance.choice(hosts)
        if one != other:
            scene.faults.delay_bytes(one, other, scene.chance.uniform(1.0, 8.0))
        await scene.wait(0.2, 3.0)
    await scene.written()


@act("slow links", replicated)
async def slow_links(scene: Scene) -> None:
    """Links that take up to 100 ms and carry 3 Mbit/s, with long delays now and then: everything goes on, only later."""
    for one in scene.nodes:
        for other in scene.nodes:
            if one < other and scene.chance.random() < 0.6:
                scene.faults.slow_link(host(one), host(other))
    leader = scene.leader()
    scene.faults.kill(leader)
    await scene.wait(0.5, 2.0)
    scene.start(leader)
    await scene.written(10)
