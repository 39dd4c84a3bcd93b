"""Time: clocks that drift and jump, nodes that are slow or stand still for a while."""

from __future__ import annotations

from strandline.histories.acts.act import act, quorum
from strandline.histories.acts.scene import Scene

HOUR_MS = 3_600_000


@act("clocks drift and jump")
async def clocks(scene: Scene) -> None:
    """Clocks run up to a tenth too fast or too slow, and wall clocks jump by an hour: only liveness may feel it."""
    for node_id in scene.nodes[:3]:
        scene.faults.clock_drift(node_id, scene.chance.uniform(-0.1, 0.1))
    for _ in range(3):
        node_id = scene.chance.choice(scene.nodes)
        scene.faults.clock_jump(node_id, scene.chance.choice((-HOUR_MS, HOUR_MS)))
        if scene.either():
            controller = scene.controller()
            scene.faults.kill(controller)
            await scene.wait(0.0, 0.3)
            scene.start(controller)
        await scene.wait(0.1, 2.0)


@act("controller paused", quorum)
async def controller_paused(scene: Scene) -> None:
    """The leader stands still until it is deposed, and wakes up believing that it leads: it commits nothing more."""
    controller = scene.controller()
    if scene.faults.pause(controller):
        await scene.another_controller(controller)
        await scene.commits(1, scene.others(scene.voters, controller))
    scene.cluster.resume(controller)
    await scene.wait(0.0, 0.5)
    await scene.caught_up(controller)


@act("paused now and then", lambda setting: len(setting.shape.ids) >= 2)
async def paused_now_and_then(scene: Scene) -> None:
    """Any node stands still for any time, also while another one is killed."""
    for _ in range(2):
        one, other = scene.chance.sample(scene.nodes, 2)
        scene.faults.pause(one)
        await scene.wait(0.0, 3.0)
        if scene.chance.random() < 0.4:
            scene.faults.kill(other)
        scene.cluster.resume(one)
        await scene.wait(0.0, 0.5)
        scene.start(other)
        await scene.wait(0.0, 0.5)


@act("slow nodes")
async def slow_nodes(scene: Scene) -> None:
    """Event loops that take a hundred times as long per turn: late, but never wrong."""
    for node_id in {scene.controller(), scene.chance.choice(scene.nodes)}:
        scene.faults.slow(node_id, scene.chance.choice((20, 100)))
    await scene.written(10)
    victim = scene.chance.choice(scene.nodes)
    scene.faults.kill(victim)
    await scene.wait(0.5, 2.0)
    scene.start(victim)
    await scene.written()
