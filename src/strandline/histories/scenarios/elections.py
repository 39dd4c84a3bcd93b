"""Leaders that come and go: the first one, one that is killed or stopped, all killed at once, one after the other."""

from __future__ import annotations

from strandline.histories.scenario import APART, FIVE, ONE_BROKER, THREE, Story, scenario


@scenario("initial election", (THREE, APART, FIVE))
async def initial_election(story: Story) -> None:
    """Nobody leads; somebody does soon, and everybody follows."""
    await story.begin(commits=10)
    await story.caught_up(*story.cluster.members)


@scenario("leader killed", (THREE, APART, FIVE))
async def leader_killed(story: Story) -> None:
    """kill -9 of the leader: another one goes on, and the old one follows when it is back."""
    leader = await story.begin()
    story.cluster.kill(leader)
    await story.leader(other_than=leader)
    await story.progress(5)
    story.cluster.start(leader)
    await story.progress(5)
    await story.caught_up(leader)


@scenario("leader stopped", (THREE, APART, FIVE))
async def leader_stopped(story: Story) -> None:
    """SIGTERM of the leader: it hands over, and nobody waits for a timeout."""
    leader = await story.begin()
    await story.cluster.stop(leader)
    await story.leader(other_than=leader)
    await story.progress(5)
    story.cluster.start(leader)
    await story.progress(5)
    await story.caught_up(leader)


@scenario("all killed, majority back", (THREE, APART, FIVE))
async def all_killed(story: Story) -> None:
    """Everybody dies at once; a majority is enough to go on with all that was committed."""
    await story.begin()
    story.cluster.kill(*story.cluster.members)
    await story.wait(0.01, 0.5)
    voters = story.voters
    story.chance.shuffle(voters)
    back = voters[: len(voters) // 2 + 1]
    observers = [node_id for node_id in story.cluster.members if node_id not in voters]
    story.cluster.start(*back, *observers)
    await story.progress(5)
    await story.caught_up(*back)


@scenario("repeated kills", (THREE, APART))
async def repeated_kills(story: Story) -> None:
    """One voter after the other is killed and comes back, leaders before others."""
    await story.begin(5)
    for _ in range(4):
        leader = story.cluster.leader()
        victim = leader if leader is not None and story.chance.random() < 0.7 else story.chance.choice(story.voters)
        story.cluster.kill(victim)
        await story.wait(0.01, 1.0)
        story.cluster.start(victim)
        await story.wait(0.0, 1.0)


@scenario("rolling restart", (THREE, APART))
async def rolling_restart(story: Story) -> None:
    """Every node is stopped and started, one at a time."""
    await story.begin(5)
    for node_id in list(story.cluster.members):
        await story.cluster.stop(node_id)
        await story.wait(0.0, 0.3)
        story.cluster.start(node_id)
        await story.caught_up(node_id)


@scenario("observers", (ONE_BROKER, APART))
async def observers(story: Story) -> None:
    """Brokers follow the metadata log through kills of their own and of the leader's; they never vote."""
    await story.begin(5)
    for _ in range(3):
        broker = story.chance.choice(story.brokers)
        story.cluster.kill(broker)
        if story.chance.random() < 0.5:
            leader = await story.leader()
            story.cluster.kill(leader)
            await story.wait(0.0, 0.5)
            story.cluster.start(leader)
        await story.wait(0.0, 1.0)
        story.cluster.start(broker)
        await story.caught_up(broker)
