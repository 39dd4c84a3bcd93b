"""Time: clocks that drift and jump, nodes that are slow or stand still for a while."""

from __future__ import annotations

from strandline.histories.scenario import APART, FIVE, THREE, Story, scenario


@scenario("clocks drift and jump", (THREE, APART))
async def clocks(story: Story) -> None:
    """Clocks run up to a tenth too fast or too slow, and wall clocks jump by an hour: only liveness may feel it."""
    for member in story.cluster.members.values():
        member.machine.clock.set_drift(story.chance.uniform(-0.1, 0.1))
    await story.begin(5)
    for _ in range(4):
        member = story.cluster.members[story.chance.choice(list(story.cluster.members))]
        jump_ms = story.chance.choice((-3_600_000, 3_600_000))
        story.transcript.note(member.name, f"its wall clock jumps by {jump_ms} ms")
        member.machine.clock.jump(jump_ms)
        if story.chance.random() < 0.5:
            leader = await story.leader()
            story.cluster.kill(leader)
            await story.wait(0.0, 0.3)
            story.cluster.start(leader)
        await story.wait(0.1, 0.8)


@scenario("leader paused", (THREE, APART, FIVE))
async def leader_paused(story: Story) -> None:
    """The leader stands still until it is deposed, and wakes up believing that it leads: it commits nothing more."""
    leader = await story.begin(5)
    for _ in range(2):
        story.cluster.pause(leader)
        following = await story.leader(other_than=leader)
        await story.progress(3, among=[voter for voter in story.voters if voter != leader])
        story.cluster.resume(leader)
        await story.wait(0.0, 0.5)
        await story.caught_up(leader)
        leader = following


@scenario("paused now and then", (THREE, APART))
async def paused_now_and_then(story: Story) -> None:
    """Any node stands still for any time, also while another one is killed."""
    await story.begin(5)
    for _ in range(4):
        one, other = story.chance.sample(list(story.cluster.members), 2)
        story.cluster.pause(one)
        await story.wait(0.0, 2.0)
        if story.chance.random() < 0.4:
            story.cluster.kill(other)
        story.cluster.resume(one)
        await story.wait(0.0, 0.5)
        story.cluster.start(other)
        await story.wait(0.0, 0.5)


@scenario("slow nodes", (THREE, APART))
async def slow_nodes(story: Story) -> None:
    """Event loops that take a hundred times as long per turn: late, but never wrong."""
    leader = await story.begin(5)
    for node_id in {leader, story.chance.choice(story.voters)}:
        story.cluster.slow(node_id, story.chance.choice((20, 100)))
    await story.progress(5)
    story.cluster.kill(story.chance.choice(story.voters))
    await story.wait(0.5, 2.0)
