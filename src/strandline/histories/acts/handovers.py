"""Leadership that changes hands while everybody is alive: by request, to and fro, with records on the way (A7, A9, A12)."""

from __future__ import annotations

from strandline.histories.acts.act import act, replicated
from strandline.histories.acts.late_isr import prefer
from strandline.histories.acts.scene import Scene
from strandline.histories.setting import Setting


@act("leaders by request, to and fro", replicated, weight=4)
async def to_and_fro(scene: Scene) -> None:
    """A leader hands over with a tail that nobody else has, stays in sync, and cuts it; or does not notice that another led."""
    number = scene.any_partition()
    if scene.either():
        for one in scene.brokers:
            for other in scene.brokers:
                if one < other:
                    scene.faults.slow_link(f"n{one}", f"n{other}", 0.04)
    watching = scene.load.watch_end(scene.convergence.names[number])
    with scene.haste():
        for how in scene.chance.sample(("tail", "tail", "asleep", "asleep", "heir asleep"), 4):
            leader = scene.leader(number)
            heir = scene.chance.choice(scene.followers(number))
            if how == "tail" and leader != scene.controller() and heir != scene.controller():
                for follower in scene.followers(number):
                    scene.faults.cut_one_way(leader, follower)
                await scene.wait(0.2, 0.6)
                await prefer(scene, number, heir)
                await scene.wait(0.0, 0.3)
                scene.heal_network()
            elif how == "asleep" and leader != scene.controller():
                scene.faults.pause(leader)
                await prefer(scene, number, heir)
                await scene.wait(0.0, 0.5)
                await prefer(scene, number, leader)
                scene.cluster.resume(leader)
            elif how == "heir asleep":
                (other, *_) = scene.others(scene.followers(number), heir)
                if other != scene.controller():
                    scene.faults.pause(other)  # it wakes up with the epoch of before
                await prefer(scene, number, heir)
                await prefer(scene, number, leader)
                scene.cluster.resume(other)
            else:
                await prefer(scene, number, heir)
            await scene.wait(0.0, 0.8)
    watching.cancel()
    await scene.whole()


def _brisk(setting: Setting) -> bool:
    return replicated(setting) and setting.timers.is_brisk


@act("followers that are always a little behind", _brisk)
async def always_behind(scene: Scene) -> None:
    """Records come faster than a round trip takes, for longer than the lag: who fetches all the time stays in sync (A15)."""
    for one in scene.brokers:
        for other in scene.brokers:
            if one < other:
                scene.faults.slow_link(f"n{one}", f"n{other}", 0.06)
    with scene.haste():
        await scene.wait(2.0, 2.0 + 2 * scene.timers.lag_s)
    await scene.written()


@act("again and again within a moment", replicated, weight=2)
async def within_a_moment(scene: Scene) -> None:
    """A broker dies as soon as it is registered, several times, while what it said before is still on its way."""
    for _ in range(2):
        victim = scene.chance.choice(scene.others(scene.brokers, scene.controller()))
        for _ in range(3):
            scene.faults.delay_bytes(f"n{victim}", f"n{scene.controller()}", scene.chance.uniform(0.2, 4.0))
            scene.faults.kill(victim)
            scene.start(victim)
            await scene.wait(0.05, 1.2)
        await scene.whole()


@act("min ISR changes", replicated, weight=2)
async def min_isr_changes(scene: Scene) -> None:
    """min.insync.replicas of a topic that is on its devices goes up and down while its replicas leave and come back."""
    topics = [topic for topic in scene.setting.topics if topic.is_synced and topic.replicas >= 2]
    topic = scene.chance.choice(topics)
    number = scene.partition_of(topic.name)
    assert number is not None
    for _ in range(2):
        victim = scene.chance.choice(scene.followers(number))
        if scene.either():
            await scene.faults.stop(victim)
        else:
            scene.faults.kill(victim)
        for value in scene.chance.sample(range(1, topic.replicas + 1), 2):
            if scene.faults.inject("min ISR changed", f"{topic.name} to {value}", lambda: None):
                await scene.alter_topic(topic.name, "min.insync.replicas", str(value))
            await scene.wait(0.0, 1.0)
        if scene.either():
            other = scene.leader(number)
            scene.faults.kill(other)
            await scene.wait(0.0, 0.5)
            scene.start(other)
        scene.start(victim)
        await scene.wait(0.0, 1.0)
    await scene.whole()
    await scene.alter_topic(topic.name, "min.insync.replicas", str(topic.min_isr))
