"""Leadership that changes hands while all brokers are alive: by request, to and fro, with records on the way (A7, A9,
A12)."""

from __future__ import annotations

from strandline.histories.nemeses.context import NemesisContext
from strandline.histories.nemeses.late_isr import prefer
from strandline.histories.nemeses.nemesis import nemesis, replicated
from strandline.histories.setting import HistorySetting


@nemesis("leaders by request, to and fro", replicated, weight=4)
async def to_and_fro(context: NemesisContext) -> None:
    """A leader hands over with a tail that no other replica has, stays in sync, and cuts it; or does not notice that
    another led."""
    number = context.any_partition()
    if context.either():
        for one in context.brokers:
            for other in context.brokers:
                if one < other:
                    context.faults.slow_link(f"n{one}", f"n{other}", 0.04)
    watching = context.load.watch_end(context.convergence.names[number])
    with context.haste():
        for how in context.chance.sample(("tail", "tail", "asleep", "asleep", "heir asleep"), 4):
            leader = context.leader(number)
            heir = context.chance.choice(context.followers(number))
            if how == "tail" and leader != context.controller() and heir != context.controller():
                for follower in context.followers(number):
                    context.faults.cut_one_way(leader, follower)
                await context.wait(0.2, 0.6)
                await prefer(context, number, heir)
                await context.wait(0.0, 0.3)
                context.heal_network()
            elif how == "asleep" and leader != context.controller():
                context.faults.pause(leader)
                await prefer(context, number, heir)
                await context.wait(0.0, 0.5)
                await prefer(context, number, leader)
                context.cluster.resume(leader)
            elif how == "heir asleep":
                (other, *_) = context.others(context.followers(number), heir)
                if other != context.controller():
                    context.faults.pause(other)  # it wakes up with the epoch of before
                await prefer(context, number, heir)
                await prefer(context, number, leader)
                context.cluster.resume(other)
            else:
                await prefer(context, number, heir)
            await context.wait(0.0, 0.8)
    watching.cancel()
    await context.whole()


def _brisk(setting: HistorySetting) -> bool:
    return replicated(setting) and setting.timers.is_brisk


@nemesis("followers that are always a little behind", _brisk)
async def always_behind(context: NemesisContext) -> None:
    """Records come faster than a round trip takes, for longer than the lag: who fetches all the time stays in sync
    (A15)."""
    for one in context.brokers:
        for other in context.brokers:
            if one < other:
                context.faults.slow_link(f"n{one}", f"n{other}", 0.06)
    with context.haste():
        await context.wait(2.0, 2.0 + 2 * context.timers.lag_s)
    await context.written()


@nemesis("again and again within a moment", replicated, weight=2)
async def within_a_moment(context: NemesisContext) -> None:
    """A broker dies as soon as it is registered, several times, while what it said before is still on its way."""
    for _ in range(2):
        victim = context.chance.choice(context.others(context.brokers, context.controller()))
        for _ in range(3):
            context.faults.delay_bytes(f"n{victim}", f"n{context.controller()}", context.chance.uniform(0.2, 4.0))
            context.faults.kill(victim)
            context.start(victim)
            await context.wait(0.05, 1.2)
        await context.whole()


@nemesis("min ISR changes", replicated, weight=2)
async def min_isr_changes(context: NemesisContext) -> None:
    """min.insync.replicas of a topic that is on its devices goes up and down while its replicas leave and come back."""
    topics = [topic for topic in context.setting.topics if topic.is_synced and topic.replicas >= 2]
    topic = context.chance.choice(topics)
    number = context.partition_of(topic.name)
    assert number is not None
    for _ in range(2):
        victim = context.chance.choice(context.followers(number))
        if context.either():
            await context.faults.stop(victim)
        else:
            context.faults.kill(victim)
        for value in context.chance.sample(range(1, topic.replicas + 1), 2):
            if context.faults.inject("min ISR changed", f"{topic.name} to {value}", lambda: None):
                await context.alter_topic(topic.name, "min.insync.replicas", str(value))
            await context.wait(0.0, 1.0)
        if context.either():
            other = context.leader(number)
            context.faults.kill(other)
            await context.wait(0.0, 0.5)
            context.start(other)
        context.start(victim)
        await context.wait(0.0, 1.0)
    await context.whole()
    await context.alter_topic(topic.name, "min.insync.replicas", str(topic.min_isr))
