"""Cut links: the leader cut off, the quorum split, topologies in which not everybody reaches everybody, one-way links."""

from __future__ import annotations

from strandline.histories.judges import StableLeadership
from strandline.histories.scenario import APART, FIVE, THREE, Shape, Story, scenario

FIVE_APART = Shape(voters=5, brokers=1)
USUAL_TIMEOUTS = {"controller.quorum.fetch.timeout.ms": "2000", "controller.quorum.election.timeout.ms": "1000"}


@scenario("leader cut off", (THREE, APART, FIVE))
async def leader_cut_off(story: Story) -> None:
    """The old leader hears nobody and commits nothing; the others elect another one."""
    leader = await story.begin()
    story.cluster.isolate(leader)
    others = [voter for voter in story.voters if voter != leader]
    await story.leader(other_than=leader)
    await story.progress(5, among=others)
    story.cluster.heal_network()
    await story.caught_up(leader)


@scenario("two and three", (FIVE, FIVE_APART))
async def two_and_three(story: Story) -> None:
    """Five voters are split: three go on, two do not; then they are one again."""
    await story.begin()
    voters = story.voters
    story.chance.shuffle(voters)
    few, many = voters[:2], voters[2:]
    others = [node_id for node_id in story.cluster.members if node_id not in voters]
    story.cluster.split(few, [*many, *others])
    await story.progress(8, among=many)
    behind, ahead = story.cluster.high_watermark(*few), story.cluster.high_watermark(*many)
    assert ahead > behind, f"the minority has {behind} committed, the majority {ahead}"
    story.cluster.heal_network()
    await story.progress(5)
    await story.caught_up(*story.voters)


@scenario("not everybody reaches everybody", (FIVE, FIVE_APART), also=(StableLeadership,), config=USUAL_TIMEOUTS)
async def first_leader_stays(story: Story) -> None:
    """From the beginning only some links are there: whoever is elected by those it reaches stays."""
    a, b, c, d, e = story.voters
    for one, other in ((a, b), (a, d), (a, e), (b, c), (b, e)):
        story.cluster.cut(one, other)
    leader = await story.begin(8)
    reached = {c: (a, d, e), d: (b, c, e), e: (c, d)}
    assert leader in reached, f"n{leader} leads without a majority in its reach"
    await story.progress(8)
    await story.caught_up(*reached[leader])
    story.cluster.heal_network()
    await story.caught_up(*story.voters)


@scenario("links go, the leader stays", (FIVE, FIVE_APART), also=(StableLeadership,), config=USUAL_TIMEOUTS)
async def leader_stays(story: Story) -> None:
    """Links go, but the leader keeps a majority: those that lost it do not depose it."""
    leader = await story.begin(5)
    a, b, d, e = (voter for voter in story.voters if voter != leader)
    await story.caught_up(*story.voters)
    for one, other in ((a, b), (a, d), (a, e), (b, leader), (b, e)):
        story.cluster.cut(one, other)
    await story.progress(10)
    await story.caught_up(a, d, e)
    await story.wait(1.0, 4.0)
    story.cluster.heal_network()
    await story.caught_up(*story.voters)


@scenario("one-way links", (THREE, APART, FIVE))
async def one_way_links(story: Story) -> None:
    """Single directions fail, here and there; epochs do not run away."""
    await story.begin(5)
    before = max(seen.epoch for seen in story.cluster.sight.nodes.values())
    for _ in range(3):
        source, target = story.chance.sample(story.voters, 2)
        story.cluster.cut_one_way(source, target)
        await story.wait(0.3, 3.0)
        story.cluster.heal_network()
        await story.wait(0.0, 1.0)
    after = max(seen.epoch for seen in story.cluster.sight.nodes.values())
    assert after - before <= 12, f"three cut links took the epoch from {before} to {after}"


@scenario("repeated leader cuts", (THREE, APART, FIVE))
async def repeated_leader_cuts(story: Story) -> None:
    """As soon as another one leads, it is cut off, and the one before comes back."""
    leader = await story.begin(5)
    for _ in range(2):
        story.cluster.isolate(leader)
        following = await story.leader(other_than=leader)
        story.cluster.heal_network()
        leader = following
    story.cluster.isolate(leader)
    others = [voter for voter in story.voters if voter != leader]
    await story.progress(5, among=others)


@scenario("lost replies", (THREE, APART))
async def lost_replies(story: Story) -> None:
    """Connections break at any byte, between nodes and to clients: requests are sent again, and are done once."""
    await story.begin(5)
    hosts = [member.name for member in story.cluster.members.values()]
    clients = [name for name in story.world.nodes if name not in hosts]
    for _ in range(15):
        one = story.chance.choice(hosts)
        other = story.chance.choice([name for name in (*hosts, *clients) if name != one])
        story.cluster.reset(one, other)
        await story.wait(0.0, 0.3)


@scenario("late bytes", (THREE, APART))
async def late_bytes(story: Story) -> None:
    """What was sent on connections that are long forgotten arrives after what was sent on the new ones."""
    leader = await story.begin(5)
    for _ in range(3):
        for other in story.voters:
            if other != leader:
                story.cluster.cut_one_way(leader, other)  # held back, not lost
        await story.wait(0.5, 2.5)
        story.cluster.heal_network()
        await story.wait(0.0, 0.5)
        leader = await story.leader()
