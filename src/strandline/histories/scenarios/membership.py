"""Voters that change while nodes are killed and cut off (KIP-853, D13)."""

from __future__ import annotations

import asyncio

from strandline.histories.cluster import Shape
from strandline.histories.scenario import Story, scenario
from strandline.histories.voter_changes import VoterChanges

DYNAMIC = (Shape(voters=3, brokers=1, spares=1), Shape(voters=1, brokers=1, spares=2))
THREE_AND_ONE = (Shape(voters=3, brokers=1, spares=1),)


@scenario("voters come and go", DYNAMIC)
async def voters_come_and_go(story: Story) -> None:
    """Controllers become voters and stop being it, the leader among them; nobody is harmed."""
    await story.begin(5)
    changes = VoterChanges(story.cluster)
    for spare in story.cluster.shape.spare_ids:
        await changes.add(spare)
    await story.progress(5)
    leader = await story.leader()
    await changes.remove(leader)
    await story.leader(other_than=leader)
    await story.progress(5)
    await changes.add(leader)
    await settled(story, changes)


@scenario("voters change under kills", THREE_AND_ONE)
async def voters_change_under_kills(story: Story) -> None:
    """While a voter is added or removed, any voter dies; the change happens wholly or not at all, and then it happens."""
    await story.begin(5)
    changes = VoterChanges(story.cluster)
    (spare,) = story.cluster.shape.spare_ids
    adding = changes.add(spare)
    await harm_until_done(story, adding)
    gone = story.chance.choice(story.voters)
    removing = changes.remove(gone)
    await harm_until_done(story, removing)
    await settled(story, changes)


@scenario("voters change under power losses", THREE_AND_ONE)
async def voters_change_under_power_losses(story: Story) -> None:
    """The same, with hosts that go dark, and with the leader cut off."""
    await story.begin(5)
    changes = VoterChanges(story.cluster)
    (spare,) = story.cluster.shape.spare_ids
    await harm_until_done(story, changes.add(spare), power=True)
    leader = await story.leader()
    removing = changes.remove(leader)
    await story.wait(0.0, 0.02)
    story.cluster.isolate(leader)
    await story.wait(0.5, 3.0)
    story.cluster.heal_network()
    await harm_until_done(story, removing, power=True)
    await settled(story, changes)


@scenario("a voter is replaced", THREE_AND_ONE)
async def voter_replaced(story: Story) -> None:
    """A voter lost its disk: it is taken out, comes back empty as another replica, and is let in again."""
    await story.begin(5)
    changes = VoterChanges(story.cluster)
    leader = await story.leader()
    victim = story.chance.choice([voter for voter in story.voters if voter != leader])
    remove = changes.remove(victim)  # names the directory that is about to be lost
    await remove
    story.cluster.wipe(victim)
    story.cluster.start(victim)
    await story.caught_up(victim)
    await changes.add(victim)
    await story.progress(3)
    await settled(story, changes)


async def harm_until_done(story: Story, change: asyncio.Task[None], *, power: bool = False) -> None:
    """Kill one voter after the other while a change goes on; let it end in peace if it takes too long."""
    voters = [*story.voters, *story.cluster.shape.spare_ids]
    for _ in range(3):
        await story.wait(0.0, 0.15)
        if change.done():
            break
        victim = story.chance.choice(voters)
        (story.cluster.power_loss if power else story.cluster.kill)(victim)
        await story.wait(0.0, 0.6)
        story.cluster.start(victim)
        await story.wait(0.0, 0.4)
    await story.cluster.until(change.done, "the change of voters is answered", 60.0)
    change.result()


async def settled(story: Story, changes: VoterChanges) -> None:
    story.cluster.heal()
    await story.converge("with the new voters")
    changes.judge()
