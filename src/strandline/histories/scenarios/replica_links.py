"""Links between brokers that are cut, one way or both, slow, or reset all the time, under load."""

from __future__ import annotations

from strandline.histories.cluster import host
from strandline.histories.record_story import APART, FIVE, THREE, RecordStory, replicated
from strandline.sim.network import Link


@replicated("partition leader cut off", (THREE, APART, FIVE))
async def leader_cut_off(story: RecordStory) -> None:
    """A leader is alone, or alone with its clients: it can't commit, the others elect; afterwards the logs match."""
    leader = await story.begin()
    for _ in range(3):
        others = [node_id for node_id in story.cluster.members if node_id != leader]
        if story.chance.random() < 0.5:
            story.cluster.isolate(leader)
        else:
            story.cluster.split([leader], others)
        following = await story.led(0, but=leader)
        await story.wait(0.0, 3.0)
        story.cluster.heal_network()
        await story.written(5)
        leader = following


@replicated("leader cut off from its followers", (THREE, APART))
async def cut_off_from_followers(story: RecordStory) -> None:
    """A leader does not reach its followers, but the controller: it takes them out of the ISR, and stops below the minimum."""
    leader = await story.begin()
    followers = story.followers_of(0)
    for follower in followers[: story.chance.choice((1, 2))]:
        if story.chance.random() < 0.5:
            story.cluster.cut(leader, follower)
        elif story.chance.random() < 0.5:
            story.cluster.cut_one_way(leader, follower)
        else:
            story.cluster.cut_one_way(follower, leader)
    await story.wait(1.0, 6.0)
    if story.chance.random() < 0.4:
        story.cluster.kill(leader)
    await story.wait(0.0, 2.0)
    story.cluster.heal_network()
    story.cluster.start(leader)
    await story.written(5)


@replicated("leader cut off from the controllers", (APART, FIVE))
async def cut_off_from_controllers(story: RecordStory) -> None:
    """A leader reaches its followers and not the controllers, one way or both: it is fenced, and others lead."""
    leader = await story.begin()
    for _ in range(2):
        for controller in story.voters:
            if controller != leader:
                story.chance.choice((story.cluster.cut, story.cluster.cut_one_way))(leader, controller)
        await story.wait(0.5, 5.0)
        story.cluster.heal_network()
        await story.written(5)
        leader = await story.led(0)


@replicated("cuts at random", (THREE, FIVE))
async def cuts_at_random(story: RecordStory) -> None:
    """Any link is cut and healed again and again."""
    await story.begin()
    for _ in range(5):
        for _ in range(story.chance.choice((1, 2, 3))):
            one, other = story.chance.sample(list(story.cluster.members), 2)
            story.chance.choice((story.cluster.cut, story.cluster.cut_one_way))(one, other)
        await story.wait(0.2, 2.5)
        story.cluster.heal_network()
        await story.wait(0.0, 1.0)


@replicated("connections reset")
async def connections_reset(story: RecordStory) -> None:
    """Connections between brokers and to clients break after any prefix of their bytes: replies are lost, requests repeated."""
    await story.begin()
    hosts = [*(host(i) for i in story.cluster.members), "writer-once", "writer-all", "writer-one", "reader"]
    for _ in range(25):
        one, other = story.chance.sample(hosts, 2)
        story.cluster.reset(one, other)
        await story.wait(0.0, 0.3)


@replicated("slow links")
async def slow_links(story: RecordStory) -> None:
    """Links that take up to 100 ms and carry 3 Mbit/s, with long delays now and then: everything goes on, only later."""
    slow = Link(latency_s=0.05, jitter_s=0.02, spike_probability=0.02, spike_s_max=0.8, bytes_per_s=375_000)
    for one in story.brokers:
        for other in story.brokers:
            if one != other and story.chance.random() < 0.6:
                story.world.network.set_link(host(one), host(other), slow)
    leader = await story.begin(20)
    story.cluster.kill(leader)
    await story.wait(0.5, 2.0)
    story.cluster.start(leader)
    await story.written(10)
